//! Formal contexts.

use crate::bits::{self, BitMatrix};
use std::collections::HashMap;

/// Objects, attributes, and which object has which attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    objects: Vec<String>,
    attributes: Vec<String>,
    incidence: BitMatrix,
}

impl Context {
    /// Objects with their attributes; attributes are numbered as they first appear.
    #[must_use]
    pub fn from_sets<A>(sets: impl IntoIterator<Item = (String, A)>) -> Self
    where
        A: IntoIterator<Item = String>,
    {
        let mut objects = Vec::new();
        let mut attributes = Vec::new();
        let mut numbers = HashMap::new();
        let mut pairs = Vec::new();
        for (object, set) in sets {
            for attribute in set {
                let number = *numbers.entry(attribute).or_insert_with_key(|attribute| {
                    attributes.push(attribute.clone());
                    attributes.len() - 1
                });
                pairs.push((objects.len(), number));
            }
            objects.push(object);
        }
        let mut incidence = BitMatrix::new(objects.len(), attributes.len());
        for (object, attribute) in pairs {
            incidence.set(object, attribute);
        }
        Self {
            objects,
            attributes,
            incidence,
        }
    }

    /// Objects and attributes by name, with one row an object and one column an attribute.
    ///
    /// # Panics
    /// If the matrix has another size.
    #[must_use]
    pub fn new(objects: Vec<String>, attributes: Vec<String>, incidence: BitMatrix) -> Self {
        assert_eq!(
            (incidence.rows(), incidence.columns()),
            (objects.len(), attributes.len()),
            "size of a context"
        );
        Self {
            objects,
            attributes,
            incidence,
        }
    }

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

    /// Which object (row) has which attribute (column).
    #[must_use]
    pub fn incidence(&self) -> &BitMatrix {
        &self.incidence
    }

    /// With the attributes that `other` has for objects of the same names behind its own. What `other` alone has is left out.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Self {
        let places: HashMap<&str, usize> = other
            .objects
            .iter()
            .enumerate()
            .map(|(it, name)| (name.as_str(), it))
            .collect();
        let own = self.attributes.len();
        let attributes: Vec<String> = self
            .attributes
            .iter()
            .chain(&other.attributes)
            .cloned()
            .collect();
        let mut incidence = BitMatrix::new(self.objects.len(), attributes.len());
        for (row, object) in self.objects.iter().enumerate() {
            for column in bits::ones(self.incidence.row(row)) {
                incidence.set(row, column);
            }
            let place = places.get(object.as_str());
            for column in place
                .into_iter()
                .flat_map(|it| bits::ones(other.incidence.row(*it)))
            {
                incidence.set(row, own + column);
            }
        }
        Self {
            objects: self.objects.clone(),
            attributes,
            incidence,
        }
    }

    /// Objects and attributes exchanged.
    #[must_use]
    pub fn dual(&self) -> Self {
        Self {
            objects: self.attributes.clone(),
            attributes: self.objects.clone(),
            incidence: self.incidence.transposed(),
        }
    }
}
