//! An execution from a file: everything that it names must be there, as analyses rely on it.

use super::{Event, Execution, GoroutineId, ObjectId, SiteId, What};

/// Why bytes are no execution.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// Other JSON, or none; serde says what it expected, and where.
    #[error("expected an execution, found other JSON or none: {0}")]
    Json(#[from] serde_json::Error),
    /// It names what it does not have.
    #[error("{place}: expected the number of one of {count} {what}, found {found}")]
    Missing {
        /// Which part of the execution names it.
        place: String,
        /// What it names.
        what: &'static str,
        /// So many of them there are, numbered from 0.
        count: usize,
        /// The number.
        found: usize,
    },
}

impl Execution {
    /// Reads what was kept of an execution, as JSON. It takes memory and time in proportion to the bytes.
    ///
    /// # Errors
    /// Where it is none, or names a place, an object, a goroutine or an event that it does not have.
    pub fn read(bytes: &[u8]) -> Result<Self, ExecutionError> {
        let execution: Self = serde_json::from_slice(bytes)?;
        execution.check()?;
        Ok(execution)
    }

    fn check(&self) -> Result<(), ExecutionError> {
        let names = Names(self);
        // The first goroutine is main's.
        names.goroutine("the main goroutine", Some(GoroutineId(0)))?;
        names.goroutine("test", self.test)?;
        for (index, object) in self.objects.iter().enumerate() {
            names.site(&format!("object {index}"), object.first)?;
        }
        for (index, goroutine) in self.goroutines.iter().enumerate() {
            let place = format!("goroutine {index}");
            names.goroutine(&place, goroutine.parent)?;
            let sites = goroutine.stack.iter().copied().map(Some);
            for site in sites.chain([goroutine.created_at, goroutine.own]) {
                names.site(&place, site)?;
            }
        }
        for (index, event) in self.events.iter().enumerate() {
            names.event(&format!("event {index}"), event)?;
        }
        for (index, _) in &self.prints {
            within("prints", "events", self.events.len(), *index)?;
        }
        for id in self.proven_leaks.iter().flatten() {
            names.goroutine("proven_leaks", Some(*id))?;
        }
        Ok(())
    }
}

/// What there is to be named.
struct Names<'a>(&'a Execution);

impl Names<'_> {
    fn site(&self, place: &str, id: Option<SiteId>) -> Result<(), ExecutionError> {
        id.map_or(Ok(()), |it| {
            within(place, "places", self.0.sites.len(), it.0 as usize)
        })
    }

    fn object(&self, place: &str, id: Option<ObjectId>) -> Result<(), ExecutionError> {
        id.map_or(Ok(()), |it| {
            within(place, "objects", self.0.objects.len(), it.0 as usize)
        })
    }

    fn goroutine(&self, place: &str, id: Option<GoroutineId>) -> Result<(), ExecutionError> {
        id.map_or(Ok(()), |it| {
            within(place, "goroutines", self.0.goroutines.len(), it.0 as usize)
        })
    }

    fn event(&self, place: &str, event: &Event) -> Result<(), ExecutionError> {
        self.goroutine(place, event.goroutine)?;
        self.site(place, event.site)?;
        match &event.what {
            What::Request { object, cases, .. } => {
                let channels = cases.iter().map(|it| it.channel);
                for named in channels.chain([*object]) {
                    self.object(place, named)?;
                }
                Ok(())
            }
            What::Make(object) => self.object(place, Some(*object)),
            What::Ready(id) | What::Create(id) => self.goroutine(place, Some(*id)),
            What::Complete { .. } | What::Park(_) | What::End | What::Panic | What::GoesOn => {
                Ok(())
            }
        }
    }
}

fn within(
    place: &str,
    what: &'static str,
    count: usize,
    found: usize,
) -> Result<(), ExecutionError> {
    if found < count {
        return Ok(());
    }
    Err(ExecutionError::Missing {
        place: place.to_owned(),
        what,
        count,
        found,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sample::{MAIN, Sample};
    use serde_json::{Value, json};

    /// What is said of an execution after a `change`.
    fn refused(change: impl FnOnce(&mut Value)) -> String {
        let mut sample = Sample::new();
        let site = sample.site(3);
        sample.execution.goroutines[0].stack.push(site);
        sample.execution.events.push(Event {
            time: 1,
            goroutine: Some(MAIN),
            site: Some(site),
            what: What::End,
        });
        let mut told = serde_json::to_value(&sample.execution).unwrap();
        let kept = Execution::read(told.to_string().as_bytes()).unwrap();
        assert_eq!(kept, sample.execution);
        change(&mut told);
        Execution::read(told.to_string().as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_is_named_is_there() {
        let no_place = refused(|it| it["goroutines"][0]["stack"][0] = json!(1));
        assert_eq!(
            no_place,
            "goroutine 0: expected the number of one of 1 places, found 1"
        );
        let no_goroutine = refused(|it| it["events"][0]["what"] = json!({"Ready": 7}));
        assert_eq!(
            no_goroutine,
            "event 0: expected the number of one of 1 goroutines, found 7"
        );
        let no_object = refused(|it| it["events"][0]["what"] = json!({"Make": 0}));
        assert!(no_object.contains("0 objects, found 0"), "{no_object}");
        let nobody = refused(|it| it["goroutines"] = json!([]));
        assert!(nobody.starts_with("the main goroutine:"), "{nobody}");
        let no_event = refused(|it| it["prints"] = json!([[1, 5]]));
        assert!(no_event.contains("one of 1 events, found 1"), "{no_event}");
    }
}
