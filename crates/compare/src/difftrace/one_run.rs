//! One run by itself, under the lens of the options.

use super::attribute::{Kind, Subjects, Table};
use super::sequence::{Folding, Lens, Objects};
use super::trees::Trees;
use crate::{Error, Options};
use lockstep_trace::Run;

/// What is looked at of one run by itself.
pub(crate) struct OneRun<'a> {
    pub(crate) trees: Trees<'a>,
    lens: Lens,
    pub(crate) folding: Folding,
    pub(crate) objects: Objects,
}

impl<'a> OneRun<'a> {
    /// # Errors
    /// A pattern that does not parse; call trees that are too large; a filter that keeps nothing.
    pub(crate) fn new(run: &'a Run, options: &Options) -> Result<Self, Error> {
        let trees = Trees::new(&[run], options)?.refuse_some()?;
        let lens = Lens::of(options);
        let mut folding = Folding::default();
        let objects = trees.objects(0, &lens, &[], &mut folding);
        objects.refuse_nothing(&folding, &lens)?;
        Ok(Self {
            trees,
            lens,
            folding,
            objects,
        })
    }

    /// The attributes of all that is looked at, and for each object its row.
    ///
    /// # Errors
    /// A family that cannot be had of these objects.
    pub(crate) fn table(&self, kind: Kind) -> Result<(Table, Vec<usize>), Error> {
        let items = &self.objects.items;
        let attributes = kind.attributes;
        let subjects = Subjects::new(&self.trees, &self.lens, &self.folding, attributes, items)?;
        Ok(subjects.table(kind.frequency))
    }
}
