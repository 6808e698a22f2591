//! Functions and structures that are too long to be read at once.

use crate::Source;
use crate::source::is_for_tests;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Lines of a function, at the most.
pub const FUNCTION: usize = 80;
/// Fields of a structure, at the most.
pub const FIELDS: usize = 12;
/// A comment that says why something is longer begins so.
pub const REASON: &str = "// Long:";

/// Something that is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Long {
    /// `crates/cli/src/main.rs:17 function main: 93 lines`.
    pub what: String,
    /// Whether a reason stands in it or above.
    pub has_reason: bool,
}

/// Everything in product code that is longer than the rules say.
#[must_use]
pub fn long(sources: &[Source]) -> Vec<Long> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|it| !it.is_test()) {
        let mut visitor = Visitor {
            source,
            lines: source.text.lines().collect(),
            found: &mut found,
        };
        visitor.visit_file(&source.file);
    }
    found
}

struct Visitor<'a> {
    source: &'a Source,
    lines: Vec<&'a str>,
    found: &'a mut Vec<Long>,
}

impl Visitor<'_> {
    fn function(&mut self, name: &syn::Ident, body: &syn::Block, whole: proc_macro2::Span) {
        let (first, last) = (body.span().start().line, body.span().end().line);
        let lines = last + 1 - first;
        if lines > FUNCTION {
            self.add(whole, first, format!("function {name}: {lines} lines"));
        }
    }

    fn add(&mut self, whole: proc_macro2::Span, line: usize, what: String) {
        let first = whole.start().line.saturating_sub(3);
        let around = self.lines.get(first..whole.end().line).unwrap_or(&[]);
        self.found.push(Long {
            what: format!("{}:{line} {what}", self.source.path.display()),
            has_reason: around.iter().any(|it| it.trim().starts_with(REASON)),
        });
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, &item.block, item.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig.ident, &item.block, item.span());
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let fields = item.fields.len();
        if fields > FIELDS {
            let what = format!("struct {}: {fields} fields", item.ident);
            self.add(item.span(), item.ident.span().start().line, what);
        }
    }
}
