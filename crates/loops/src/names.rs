//! Names for people: L0, L1, ...

use crate::body::{Bodies, BodyId, Key};
use crate::element::Element;

/// Numbers loop bodies in the order of their first occurrence, inner loops before the loop around
/// them. Scan the traces in the order normal runs, faulty run; rank; thread.
#[derive(Debug, Clone, Default)]
pub struct Names {
    order: Vec<BodyId>,
    number: Vec<Option<u32>>,
}

impl Names {
    /// No names yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the loops of one more sequence.
    pub fn scan(&mut self, sequence: &[Element], bodies: &Bodies) {
        for element in sequence {
            if let Element::Loop(looped) = element {
                self.add(looped.body(), bodies);
            }
        }
    }

    /// Names one body, after the loops within it.
    pub fn add(&mut self, body: BodyId, bodies: &Bodies) {
        let index = body.0 as usize;
        if self.number.len() <= index {
            self.number.resize(index + 1, None);
        }
        if self.number[index].is_some() {
            return;
        }
        for key in bodies.keys(body) {
            if let Key::Loop(inner) | Key::Times(inner, _) = key {
                self.add(*inner, bodies);
            }
        }
        self.number[index] = Some(self.order.len() as u32);
        self.order.push(body);
    }

    /// The named bodies: L0 first.
    #[must_use]
    pub fn order(&self) -> &[BodyId] {
        &self.order
    }

    /// The number of a body, if it was seen.
    #[must_use]
    pub fn number(&self, body: BodyId) -> Option<u32> {
        self.number.get(body.0 as usize).copied().flatten()
    }

    /// `L7`; `L?` for a body that no scanned sequence contains.
    #[must_use]
    pub fn label(&self, body: BodyId) -> String {
        match self.number(body) {
            Some(number) => format!("L{number}"),
            None => "L?".to_owned(),
        }
    }

    /// The elements of a body as text; `symbol` names the tokens. A loop shows as `L0`, or as `L0^2`
    /// where its count belongs to the body.
    pub fn body<'a>(
        &self,
        body: BodyId,
        bodies: &Bodies,
        mut symbol: impl FnMut(u32) -> &'a str,
    ) -> Vec<String> {
        bodies
            .keys(body)
            .iter()
            .map(|key| match key {
                Key::Symbol(token) => symbol(*token).to_owned(),
                Key::Loop(inner) => self.label(*inner),
                Key::Times(inner, count) => format!("{}^{count}", self.label(*inner)),
            })
            .collect()
    }

    /// The elements of a sequence as text: `["MPI_Init", "L0^4"]`.
    pub fn tokens<'a>(
        &self,
        sequence: &[Element],
        mut symbol: impl FnMut(u32) -> &'a str,
    ) -> Vec<String> {
        sequence
            .iter()
            .map(|element| match element {
                Element::Symbol(token) => symbol(*token).to_owned(),
                Element::Loop(looped) => {
                    format!("{}^{}", self.label(looped.body()), looped.count())
                }
            })
            .collect()
    }
}
