//! What the debug information of an image says, kept in the run so that a copy of it on a machine without
//! the program has it too: `lines/KEY.json`.
//!
//! ```text
//! {"functions":{"0x1149":["file.c",12]},"calls":{"0x11a3":["file.c",20]},
//!  "options":["GNU C17 14.2.0 -O2"],"inlined":["square"]}
//! ```
//! Keys are addresses in the file: a function's entry, the address behind a call. The options are the compiler's;
//! what was inlined somewhere has its linkage name.

use crate::own;
use lockstep_binary::{Built, Image, Lines};
use lockstep_format::plan::{Plan, function};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// More debug information than this is left alone: some seconds of work, and as much memory again.
pub(crate) const MOST: usize = 256 << 20;

#[derive(serde::Serialize)]
struct Table {
    functions: BTreeMap<String, (String, u32)>,
    calls: BTreeMap<String, (String, u32)>,
    options: BTreeSet<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inlined: Option<BTreeSet<String>>,
}

/// Writes the lines of the image at `path`, whose plan is `RUN/plans/PLAN`, unless they are there.
pub(crate) fn ensure(run: &Path, plan: &str, path: &Path) -> io::Result<()> {
    let Some(key) = plan.strip_suffix(".plan").filter(|key| !key.contains('/')) else {
        return Ok(());
    };
    let place = run.join("lines").join(format!("{key}.json"));
    if place.exists() {
        return Ok(());
    }
    let bytes = fs::read(path)?;
    let Ok(image) = Image::parse(&bytes) else {
        return Ok(());
    };
    let lines = Lines::new(&image, MOST);
    let built = Built::of(&image, MOST);
    // Most programs of a system have neither.
    if lines.is_none() && built.options.is_empty() {
        return Ok(());
    }
    let plan = own::read(&run.join("plans").join(plan))?;
    let Ok(plan) = Plan::kept(&plan, crc32c::crc32c_append) else {
        return Ok(());
    };
    // The file may have been replaced since.
    if plan.build_id() != image.build_id() {
        return Ok(());
    }
    let row = |address: u64, at: u64| {
        let line = lines.as_ref()?.find(at)?;
        Some((format!("{address:#x}"), line))
    };
    let table = Table {
        functions: plan
            .functions()
            .filter(|found| found.origin == function::OWN)
            .filter_map(|found| row(found.address, found.address))
            .collect(),
        calls: plan
            .call_sites()
            // The line is that of the call, which the return address lies behind.
            .filter_map(|site| row(site.return_address, site.return_address.checked_sub(1)?))
            .collect(),
        options: built.options,
        inlined: built.inlined,
    };
    let draft = run
        .join("lines")
        .join(format!(".{key}.{}", std::process::id()));
    own::put(&draft, &place, &serde_json::to_vec(&table)?)
}
