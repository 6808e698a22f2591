//! Files of a crate that import each other in a circle.
//!
//! An arrow is a path in product code that begins with `crate`, `super` or `self`: it points to the file that defines what the path
//! names, through re-exports. A name that a parent's file re-exports is the child's.

use crate::Source;
use crate::source::is_for_tests;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// A module's path inside its crate: `["progress", "order"]`; of the crate's root it is empty.
type Module = Vec<String>;

/// Files that import each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circle {
    /// The crate.
    pub room: String,
    /// Its files, by their modules.
    pub files: Vec<String>,
    /// Each arrow between them: from, line, to.
    pub arrows: Vec<(String, usize, String)>,
}

/// All circles, the largest first.
#[must_use]
pub fn circles(sources: &[Source]) -> Vec<Circle> {
    let mut rooms: BTreeMap<&str, BTreeMap<Module, &syn::File>> = BTreeMap::new();
    for source in sources.iter().filter(|it| !it.is_test()) {
        let Some(room) = &source.room else { continue };
        let files = rooms.entry(room).or_default();
        files.insert(module(source), &source.file);
    }
    let mut found: Vec<Circle> = rooms
        .into_iter()
        .flat_map(|(room, files)| of_room(room, &files))
        .collect();
    found.sort_by_key(|it| (usize::MAX - it.files.len(), it.room.clone()));
    found
}

fn module(source: &Source) -> Module {
    let path = source.path.to_str().unwrap_or("");
    let inside = path.split_once("/src/").map_or(path, |it| it.1);
    let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    match inside {
        "lib" | "main" => Vec::new(),
        _ => inside.split('/').map(str::to_owned).collect(),
    }
}

fn of_room(room: &str, files: &BTreeMap<Module, &syn::File>) -> Vec<Circle> {
    let exports: BTreeMap<&Module, BTreeMap<String, Module>> = files
        .iter()
        .map(|(module, file)| (module, exported(module, file)))
        .collect();
    let mut arrows: BTreeMap<Module, BTreeMap<Module, usize>> = BTreeMap::new();
    for (module, file) in files {
        let mut paths = Paths {
            module: module.clone(),
            found: Vec::new(),
        };
        paths.visit_file(file);
        let to = arrows.entry(module.clone()).or_default();
        for (path, line) in paths.found {
            let target = resolve(&path, files, &exports, 0);
            if target != *module {
                to.entry(target).or_insert(line);
            }
        }
    }
    let name = |module: &Module| match module.is_empty() {
        true => "(root)".to_owned(),
        false => module.join("::"),
    };
    let components = components(&arrows);
    let circles = components
        .into_iter()
        .filter(|it| it.len() > 1)
        .map(|component| {
            let within = |(from, to): (&Module, &BTreeMap<Module, usize>)| {
                let inside = to.iter().filter(|(to, _)| component.contains(*to));
                let named = inside.map(|(to, line)| (name(from), *line, name(to)));
                named.collect::<Vec<_>>()
            };
            let from = arrows.iter().filter(|(from, _)| component.contains(*from));
            Circle {
                room: room.to_owned(),
                files: component.iter().map(name).collect(),
                arrows: from.flat_map(within).collect(),
            }
        });
    circles.collect()
}

/// The file that a path leads to: the deepest module that there is, or where a re-export leads.
fn resolve(
    path: &[String],
    files: &BTreeMap<Module, &syn::File>,
    exports: &BTreeMap<&Module, BTreeMap<String, Module>>,
    depth: usize,
) -> Module {
    let deepest = (0..=path.len())
        .rev()
        .find(|it| files.contains_key(&path[..*it]));
    let length = deepest.unwrap_or(0);
    let module = path[..length].to_vec();
    let exported = path
        .get(length)
        .and_then(|item| exports.get(&module)?.get(item));
    match exported {
        Some(target) if depth < 8 => resolve(target, files, exports, depth + 1),
        _ => module,
    }
}

/// What a file makes known under another path: names of its `use`s, with the paths they stand for.
fn exported(module: &Module, file: &syn::File) -> BTreeMap<String, Module> {
    let mut found = BTreeMap::new();
    for item in &file.items {
        if let syn::Item::Use(item) = item
            && !is_for_tests(&item.attrs)
        {
            let mut names = Vec::new();
            leaves(&item.tree, &mut Vec::new(), &mut names);
            for (path, name) in names {
                if let Some(path) = absolute(module, &path).or_else(|| Some(below(module, &path))) {
                    found.insert(name, path);
                }
            }
        }
    }
    found
}

fn below(module: &Module, path: &[String]) -> Module {
    module.iter().chain(path).cloned().collect()
}

/// The paths of a `use`, and the names that they get.
fn leaves(tree: &syn::UseTree, before: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            leaves(&path.tree, before, found);
            before.pop();
        }
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                leaves(tree, before, found);
            }
        }
        syn::UseTree::Name(name) if name.ident == "self" => {
            let last = before.last().cloned().unwrap_or_default();
            found.push((before.clone(), last));
        }
        syn::UseTree::Name(name) => {
            let path = before.iter().cloned().chain([name.ident.to_string()]);
            found.push((path.collect(), name.ident.to_string()));
        }
        syn::UseTree::Rename(rename) => {
            let path = before.iter().cloned().chain([rename.ident.to_string()]);
            found.push((path.collect(), rename.rename.to_string()));
        }
        syn::UseTree::Glob(_) => found.push((before.clone(), "*".to_owned())),
    }
}

/// From the crate's root; `None` of a path that does not begin with `crate`, `super` or `self`.
fn absolute(module: &Module, path: &[String]) -> Option<Module> {
    let (first, mut rest) = path.split_first()?;
    let mut base = match first.as_str() {
        "crate" => Vec::new(),
        "self" => module.clone(),
        "super" => module.get(..module.len().checked_sub(1)?)?.to_vec(),
        _ => return None,
    };
    while let Some((first, more)) = rest.split_first()
        && first == "super"
    {
        base.pop()?;
        rest = more;
    }
    base.extend(rest.iter().cloned());
    Some(base)
}

struct Paths {
    module: Module,
    found: Vec<(Module, usize)>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_for_tests(&item.attrs) {
            return;
        }
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if is_for_tests(&item.attrs) {
            return;
        }
        let line = item.use_token.span.start().line;
        let mut names = Vec::new();
        leaves(&item.tree, &mut Vec::new(), &mut names);
        for (path, _) in names {
            self.found
                .extend(absolute(&self.module, &path).map(|it| (it, line)));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> = path
            .segments
            .iter()
            .map(|it| it.ident.to_string())
            .collect();
        if let Some(first) = path.segments.first() {
            let line = first.ident.span().start().line;
            self.found
                .extend(absolute(&self.module, &words).map(|it| (it, line)));
        }
        visit::visit_path(self, path);
    }
}

/// The sets of modules that reach each other, of all modules (Tarjan 1972, without recursion on the graph's depth: by two passes).
fn components(arrows: &BTreeMap<Module, BTreeMap<Module, usize>>) -> Vec<BTreeSet<Module>> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for start in arrows.keys() {
        let mut open = vec![(start.clone(), false)];
        while let Some((module, is_done)) = open.pop() {
            if is_done {
                order.push(module);
            } else if seen.insert(module.clone()) {
                let next = arrows
                    .get(&module)
                    .into_iter()
                    .flat_map(|it| it.keys().cloned());
                let next: Vec<Module> = next.filter(|it| !seen.contains(it)).collect();
                open.push((module, true));
                open.extend(next.into_iter().map(|it| (it, false)));
            }
        }
    }
    let mut back: BTreeMap<&Module, Vec<&Module>> = BTreeMap::new();
    for (from, to) in arrows {
        to.keys()
            .for_each(|it| back.entry(it).or_default().push(from));
    }
    let mut taken = BTreeSet::new();
    let mut found = Vec::new();
    for start in order.iter().rev() {
        let mut component = BTreeSet::new();
        let mut open = vec![start];
        while let Some(module) = open.pop() {
            if taken.insert(module.clone()) {
                component.insert(module.clone());
                open.extend(back.get(module).into_iter().flatten());
            }
        }
        if !component.is_empty() {
            found.push(component);
        }
    }
    found
}
