//! Traces that are made call by call, and what they do by chance.
#![allow(clippy::unwrap_used)]

use lockstep_trace::{Event, FunctionId};

/// A trace under way, of functions with these names.
pub struct Made {
    names: &'static [&'static str],
    pub events: Vec<Event>,
}

impl Made {
    pub fn new(names: &'static [&'static str]) -> Self {
        let events = Vec::new();
        Self { names, events }
    }

    /// A call, and what it does.
    pub fn call(&mut self, name: &str, within: impl FnOnce(&mut Self)) {
        let function = self.names.iter().position(|it| *it == name).unwrap();
        self.events.push(Event::Call(FunctionId(function as u32)));
        within(self);
        self.events.push(Event::Return);
    }

    /// A call that does nothing.
    pub fn leaf(&mut self, name: &str) {
        self.call(name, |_| {});
    }
}

/// A linear congruential generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}
