//! How names and places stand in JSON: as people write them.

use crate::model::SourceLine;
use crate::name::{ProcessName, TraceName};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;

impl Serialize for TraceName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A number where it is just a rank, which is what scripts compare and sort.
impl Serialize for ProcessName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if *self == Self::rank(self.rank) {
            serializer.serialize_u32(self.rank)
        } else {
            serializer.collect_str(self)
        }
    }
}

impl Serialize for SourceLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}:{}", self.file, self.line))
    }
}

impl JsonSchema for TraceName {
    fn schema_name() -> Cow<'static, str> {
        "Trace".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The trace of one thread, `P.T`: process and thread, such as `6.4` or `0~1.h2`.",
        })
    }
}

impl JsonSchema for ProcessName {
    fn schema_name() -> Cow<'static, str> {
        "ProcessName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "description": "A process: its rank, or without MPI its number in the order of start. If several processes have \
                that number, a name such as `0~1` or `1:6`.",
        })
    }
}

impl JsonSchema for SourceLine {
    fn schema_name() -> Cow<'static, str> {
        "SourceLine".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A line of the source, `FILE:LINE`; lines count from 1.",
        })
    }
}
