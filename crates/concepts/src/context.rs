//! A formal context.

/// Objects, attributes, and which object has which attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    objects: Vec<String>,
    attributes: Vec<String>,
}

impl Context {
    /// Names of the objects, in order.
    #[must_use]
    pub fn objects(&self) -> &[String] {
        &self.objects
    }

    /// Names of the attributes, in order.
    #[must_use]
    pub fn attributes(&self) -> &[String] {
        &self.attributes
    }
}
