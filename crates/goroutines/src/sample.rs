//! Executions made by hand, for tests: goroutines do one thing after the other, each at a line of its own.

use crate::execution::{
    Action, Case, End, Event, Execution, Goroutine, GoroutineId, Object, ObjectId, ObjectKind,
    Output, Site, SiteId, State, WaitReason, What,
};

/// Builds an [`Execution`]; whoever is parked and does nothing afterwards is waiting at the end.
pub(crate) struct Sample {
    pub execution: Execution,
}

pub(crate) const MAIN: GoroutineId = GoroutineId(0);

impl Sample {
    pub fn new() -> Self {
        let main = Goroutine {
            number: 1,
            parent: None,
            created_at: None,
            entry: "main.main".to_owned(),
            is_system: false,
            state: State::Runnable,
            stack: Vec::new(),
            own: None,
        };
        let execution = Execution {
            sites: Vec::new(),
            objects: Vec::new(),
            goroutines: vec![main],
            test: None,
            events: Vec::new(),
            prints: Vec::new(),
            main_ended: false,
            end: End::Quiescent,
            output: Output::default(),
            proven_leaks: None,
            timers: 0,
            functions: 0,
            clock: true,
            stretched: 0,
            looked: false,
            lost: 0,
            told: 0,
            outside: true,
        };
        Self { execution }
    }

    pub fn site(&mut self, line: u32) -> SiteId {
        let site = Site {
            file: "/src/main.go".to_owned(),
            line,
            function: "main.main".to_owned(),
        };
        let known = self.execution.sites.iter().position(|it| *it == site);
        let at = known.unwrap_or_else(|| {
            self.execution.sites.push(site);
            self.execution.sites.len() - 1
        });
        SiteId(at as u32)
    }

    pub fn event(&mut self, goroutine: GoroutineId, line: u32, what: What) {
        let site = self.site(line);
        let time = self.execution.events.len() as u64 * 1000;
        if let What::Park(reason) = what {
            self.execution.goroutines[goroutine.0 as usize].state = State::Waiting(reason);
        } else if what == What::End {
            self.execution.goroutines[goroutine.0 as usize].state = State::Ended;
        } else {
            self.execution.goroutines[goroutine.0 as usize].state = State::Runnable;
        }
        self.execution.events.push(Event {
            time,
            goroutine: Some(goroutine),
            site: Some(site),
            what,
        });
    }

    pub fn object(&mut self, kind: ObjectKind, line: u32) -> ObjectId {
        let first = Some(self.site(line));
        self.execution.objects.push(Object { kind, first });
        ObjectId(self.execution.objects.len() as u32 - 1)
    }

    pub fn mutex(&mut self, line: u32) -> ObjectId {
        self.object(ObjectKind::Mutex, line)
    }

    pub fn channel(&mut self, by: GoroutineId, line: u32, capacity: u64) -> ObjectId {
        let channel = self.object(ObjectKind::Channel { capacity }, line);
        self.event(by, line, What::Make(channel));
        channel
    }

    pub fn go(&mut self, parent: GoroutineId, line: u32) -> GoroutineId {
        let created_at = Some(self.site(line));
        let child = GoroutineId(self.execution.goroutines.len() as u32);
        self.execution.goroutines.push(Goroutine {
            number: u64::from(child.0) + 17,
            parent: Some(parent),
            created_at,
            entry: format!("main.main.func{}", child.0),
            is_system: false,
            state: State::Runnable,
            stack: Vec::new(),
            own: None,
        });
        self.request(parent, line, Action::Go, None);
        self.event(parent, line, What::Create(child));
        self.complete(parent, line, Action::Go);
        child
    }

    pub fn request(&mut self, by: GoroutineId, line: u32, action: Action, at: Option<ObjectId>) {
        let amount = i64::from(action == Action::Add);
        self.event(
            by,
            line,
            What::Request {
                action,
                object: at,
                cases: Vec::new(),
                default: false,
                amount,
                on_behalf: false,
            },
        );
    }

    pub fn complete(&mut self, by: GoroutineId, line: u32, action: Action) {
        let (case, ok) = (None, true);
        self.event(by, line, What::Complete { action, case, ok });
    }

    /// A usage that is over at once.
    pub fn does(&mut self, by: GoroutineId, line: u32, action: Action, at: ObjectId) {
        self.request(by, line, action, Some(at));
        self.complete(by, line, action);
    }

    /// A usage that does not end.
    pub fn waits(&mut self, by: GoroutineId, line: u32, action: Action, at: ObjectId) {
        self.request(by, line, action, Some(at));
        let reason = match action {
            Action::Send => WaitReason::Send,
            Action::Receive => WaitReason::Receive,
            Action::Lock if self.execution.objects[at.0 as usize].kind == ObjectKind::RwMutex => {
                WaitReason::RwMutexWrite
            }
            Action::Lock => WaitReason::Mutex,
            Action::RLock => WaitReason::RwMutexRead,
            Action::Wait => WaitReason::WaitGroup,
            Action::CondWait => WaitReason::Cond,
            other => panic!("{other:?} does not wait"),
        };
        self.event(by, line, What::Park(reason));
    }

    /// `by` waited in a usage, and `who` lets it go on with one of its own.
    pub fn meets(
        &mut self,
        (by, line, action): (GoroutineId, u32, Action),
        (who, at, other): (GoroutineId, u32, Action),
        object: ObjectId,
    ) {
        self.waits(by, line, action, object);
        self.request(who, at, other, Some(object));
        self.event(who, at, What::Ready(by));
        self.complete(who, at, other);
        self.complete(by, line, action);
    }

    pub fn selects(&mut self, by: GoroutineId, line: u32, cases: &[(Action, Option<ObjectId>)]) {
        let cases = cases
            .iter()
            .map(|&(action, channel)| Case { action, channel })
            .collect();
        self.event(
            by,
            line,
            What::Request {
                action: Action::Select,
                object: None,
                cases,
                default: false,
                amount: 0,
                on_behalf: false,
            },
        );
    }

    pub fn ends(&mut self, by: GoroutineId, line: u32) {
        self.event(by, line, What::End);
    }

    /// Main comes to its end, and the program with it.
    pub fn exits(&mut self) -> &mut Self {
        self.execution.main_ended = true;
        self.execution.goroutines[0].state = State::Ended;
        self.execution.end = End::Exited(0);
        self
    }
}
