//! The functions of a run: names from the plans of its images, source lines from what the recorder
//! stored beside them. Each identity (image, linkage name) once, whatever process it is in.

use crate::code::Code;
use crate::container::ImageFact;
use crate::map::Folder;
use crate::model::{Compiled, Function, FunctionId, Refused, SourceLine};
use crate::symbols::{Row, Symbols};
use lockstep_format::check;
use lockstep_format::plan::{Plan, PlanError, function, mechanism};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Larger files of source lines are not ours.
const MOST_LINES: u64 = 256 << 20;
/// The image of functions that live in libraries.
const LIBRARY: &str = "library";

/// Symbols of the main program; for each image its first symbol, and where its rows are and how many.
type Layout = (Range<u32>, Vec<(u32, usize, usize)>);

/// Builds [`crate::Run::functions`].
pub(crate) struct Catalogue<'a> {
    plans: Option<&'a Folder>,
    lines: Option<&'a Folder>,
    pub functions: Vec<Function>,
    ids: FxHashMap<(String, String), FunctionId>,
    images: FxHashMap<(String, String), Option<Arc<Image>>>,
    symbols: FxHashMap<Layout, Arc<Symbols>>,
    pub notes: Vec<String>,
}

/// An image with a plan that could be read.
#[derive(Debug)]
pub(crate) struct Image {
    /// Its build id in hexadecimal digits.
    pub build: String,
    /// How it was compiled, as it says itself.
    pub compiled: Compiled,
    /// By symbol, from the image's first one on.
    pub rows: Arc<[Row]>,
    /// How many of them are second symbols, of imports that are leaves: the last ones.
    pub second: usize,
    pub refused: Vec<RefusalRow>,
    /// How many functions and library calls were not chosen.
    pub left_out: u64,
    /// Calls in its text, by the address behind them.
    sites: FxHashMap<u64, CallSite>,
}

/// A function of it that is not recorded.
#[derive(Debug)]
pub(crate) struct RefusalRow {
    pub kind: u32,
    /// Counter of its direct calls, among the image's.
    pub counter: Option<u32>,
    pub refused: Refused,
}

#[derive(Debug, Clone)]
struct CallSite {
    caller: FunctionId,
    /// `None`: an indirect call.
    callee: Option<FunctionId>,
    line: Option<SourceLine>,
}

/// `lines/KEY.json`; keys are addresses in the file, `0x1149`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Lines {
    functions: FxHashMap<String, (String, u32)>,
    calls: FxHashMap<String, (String, u32)>,
    #[serde(flatten)]
    compiled: Compiled,
}

impl Lines {
    fn find(lines: &FxHashMap<String, (String, u32)>, address: u64) -> Option<SourceLine> {
        lines
            .get(&format!("{address:#x}"))
            .map(|(file, line)| SourceLine {
                file: file.clone(),
                line: *line,
            })
    }
}

impl Image {
    /// The source line of the call that `callee` returns to at `address` (in the file), if there is
    /// such a call and it is one in `caller` (of anything, where that is `None`). A call into a library
    /// may be recorded by the library's own function of that name.
    pub fn call_line(
        &self,
        address: u64,
        caller: Option<FunctionId>,
        callee: FunctionId,
        functions: &[Function],
    ) -> Option<SourceLine> {
        let site = self.sites.get(&address)?;
        let is_namesake = |called: FunctionId| {
            let function = |id: FunctionId| functions.get(id.0 as usize);
            function(called)
                .zip(function(callee))
                .is_some_and(|(a, b)| a.imported && a.linkage == b.linkage)
        };
        let fits = caller.is_none_or(|caller| caller == site.caller)
            && site
                .callee
                .is_none_or(|called| called == callee || is_namesake(called));
        site.line.clone().filter(|_| fits)
    }

    /// The same of a call of `callee`, whoever called.
    pub fn line_behind(&self, address: u64, callee: FunctionId) -> Option<&SourceLine> {
        let site = self.sites.get(&address)?;
        let fits = site.callee.is_none_or(|called| called == callee);
        site.line.as_ref().filter(|_| fits)
    }

    /// The same, whoever called whatever.
    pub fn any_line_behind(&self, address: u64) -> Option<SourceLine> {
        self.sites.get(&address)?.line.clone()
    }
}

impl<'a> Catalogue<'a> {
    pub fn new(plans: Option<&'a Folder>, lines: Option<&'a Folder>) -> Self {
        Self {
            plans,
            lines,
            functions: Vec::new(),
            ids: FxHashMap::default(),
            images: FxHashMap::default(),
            symbols: FxHashMap::default(),
            notes: Vec::new(),
        }
    }

    /// The image of this fact, read once; `None`, and a note once, where its plan cannot be read.
    pub fn image(&mut self, fact: &ImageFact) -> Option<Arc<Image>> {
        let name = short_name(&fact.path);
        let key = (fact.plan.clone(), name.clone());
        if let Some(image) = self.images.get(&key) {
            return image.clone();
        }
        let image = match self.read(&fact.plan, &name) {
            Ok(image) => Some(Arc::new(image)),
            Err(text) => {
                self.notes.push(format!(
                    "plans/{}: {text}: the functions of {name} have no names",
                    fact.plan
                ));
                None
            }
        };
        self.images.insert(key, image.clone());
        image
    }

    /// The symbols of a process: the same for all processes whose images lie alike among them.
    pub fn symbols(&mut self, main: Range<u32>, images: Vec<(u32, Arc<[Row]>)>) -> Arc<Symbols> {
        let place = |(first, rows): &(u32, Arc<[Row]>)| {
            let start = Arc::as_ptr(rows).addr();
            (*first, start, rows.len())
        };
        // What is kept here stays where it is.
        let layout = (main.clone(), images.iter().map(place).collect());
        let symbols = self.symbols.entry(layout);
        let symbols = symbols.or_insert_with(|| Arc::new(Symbols::new(main, images)));
        Arc::clone(symbols)
    }

    fn read(&mut self, plan: &str, image: &str) -> Result<Image, String> {
        let folder = self.plans.ok_or("the run has no plans")?;
        let file = folder.map(plan).map_err(|error| error.to_string())?;
        let lines = self.read_lines(plan);
        let plan = Plan::kept(file.bytes(), check::extend).map_err(describe)?;

        let mut rows = Vec::new();
        let mut second = 0;
        for row in plan.functions() {
            let imported = row.origin == function::IMPORT;
            second += usize::from(imported && row.mechanism == mechanism::LEAF);
            let image = if imported { LIBRARY } else { image };
            let source = Lines::find(&lines.functions, row.address).filter(|_| !imported);
            let name = String::from_utf8_lossy(row.name);
            rows.push(Row {
                function: self.intern(&name, image, imported, source),
                is_leaf: row.mechanism == mechanism::LEAF,
            });
        }
        let of_row = |row: u32| rows.get(row as usize).map(|row| row.function);
        let mut sites = FxHashMap::default();
        for row in plan.call_sites() {
            let Some(caller) = of_row(row.caller) else {
                continue;
            };
            let callee = of_row(row.callee);
            let line = Lines::find(&lines.calls, row.return_address);
            if let (Some(callee), Some(line)) = (callee, &line) {
                self.add_call(caller, callee, line);
            }
            let site = CallSite {
                caller,
                callee,
                line,
            };
            sites.insert(row.return_address, site);
        }
        for (id, code) in Code::of_image(&plan, of_row) {
            // Of two builds in one run nobody knows which it is of: the first will do.
            if let Some(function) = self.functions.get_mut(id.0 as usize)
                && function.code == Code::default()
            {
                function.code = code;
            }
        }
        let refused = plan
            .refusals()
            .map(|row| RefusalRow {
                kind: row.kind,
                counter: row.counter,
                refused: Refused {
                    name: display_name(&String::from_utf8_lossy(row.name), image),
                    image: image.to_owned(),
                    reason: String::from_utf8_lossy(row.reason).into_owned(),
                    calls: None,
                    more: row.more,
                },
            })
            .collect();
        let digits = plan.build_id().iter();
        Ok(Image {
            build: digits.map(|byte| format!("{byte:02x}")).collect(),
            compiled: lines.compiled,
            rows: rows.into(),
            second,
            refused,
            left_out: u64::from(plan.left_out()),
            sites,
        })
    }

    /// Absent lines are no damage: the program may have no debug information.
    fn read_lines(&mut self, plan: &str) -> Lines {
        let name = format!("{}.json", plan.strip_suffix(".plan").unwrap_or(plan));
        let Some(folder) = self.lines.filter(|folder| folder.has(&name)) else {
            return Lines::default();
        };
        folder
            .read(&name, MOST_LINES)
            .map_err(|error| error.to_string())
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()))
            .unwrap_or_else(|error| {
                self.notes.push(format!("lines/{name}: {error}"));
                Lines::default()
            })
    }

    fn intern(
        &mut self,
        linkage: &str,
        image: &str,
        imported: bool,
        source: Option<SourceLine>,
    ) -> FunctionId {
        let name = display_name(linkage, image);
        // A name that is an offset is none: it means something in its image only.
        let linkage = if linkage.starts_with('+') {
            name.clone()
        } else {
            linkage.to_owned()
        };
        let next = FunctionId(u32::try_from(self.functions.len()).unwrap_or(u32::MAX));
        let id = *self
            .ids
            .entry((image.to_owned(), linkage.clone()))
            .or_insert(next);
        if id == next {
            self.functions.push(Function {
                name,
                linkage,
                image: image.to_owned(),
                imported,
                source,
                calls: Vec::new(),
                code: Code::default(),
            });
        } else if let Some(function) = self.functions.get_mut(id.0 as usize) {
            function.source = function.source.take().or(source);
        }
        id
    }

    /// A function of which only the symbol is known: its image's where an image has that symbol.
    pub fn intern_stray(&mut self, symbol: u32, images: &[ImageFact], program: &str) -> FunctionId {
        let owner = images.iter().find(|image| {
            symbol
                .checked_sub(image.first)
                .is_some_and(|index| index < image.count)
        });
        let (image, number) = match owner {
            Some(image) => (short_name(&image.path), symbol - image.first),
            None => (short_name(program), symbol),
        };
        self.intern(&format!("+?{number}"), &image, false, None)
    }

    /// The function of that identity; one of that name where no plan has it. `None` where it is not this run's: a
    /// `shared` name, and every plan could be read.
    pub fn find(&mut self, image: &str, linkage: &str, shared: bool) -> Option<FunctionId> {
        let key = (image.to_owned(), linkage.to_owned());
        match self.ids.get(&key) {
            Some(id) => Some(*id),
            None if shared && self.notes.is_empty() => None,
            None => Some(self.intern(linkage, image, image == LIBRARY, None)),
        }
    }

    fn add_call(&mut self, caller: FunctionId, callee: FunctionId, line: &SourceLine) {
        if let Some(function) = self.functions.get_mut(caller.0 as usize) {
            function.calls.push((callee, line.clone()));
        }
    }

    /// All functions; call sites of two builds or of one line are listed once.
    pub fn finish(mut self) -> Vec<Function> {
        for function in &mut self.functions {
            function
                .calls
                .sort_by(|a, b| (a.0, &a.1.file, a.1.line).cmp(&(b.0, &b.1.file, b.1.line)));
            function.calls.dedup();
        }
        self.functions
    }
}

/// The linkage names of the library functions that the image of a plan calls; `None` where it cannot be read.
pub(crate) fn imports(plans: &Folder, plan: &str) -> Option<Vec<String>> {
    let file = plans.map(plan).ok()?;
    let plan = Plan::kept(file.bytes(), check::extend).ok()?;
    let imported = plan
        .functions()
        .filter(|row| row.origin == function::IMPORT);
    let names = imported.map(|row| String::from_utf8_lossy(row.name).into_owned());
    Some(names.collect())
}

/// The file name without path and version: `/usr/lib/libfoo.so.1.2` is `libfoo.so`.
pub(crate) fn short_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.find(".so.") {
        Some(at) => name[..at + 3].to_owned(),
        None => name.to_owned(),
    }
}

fn display_name(linkage: &str, image: &str) -> String {
    if linkage.starts_with('+') {
        format!("{image}{linkage}")
    } else {
        lockstep_binary::display_name(linkage)
    }
}

fn describe(error: PlanError) -> String {
    use lockstep_format::plan::VERSION;
    match error {
        PlanError::Magic => "expected a plan, found something else".to_owned(),
        PlanError::Version(found) => format!("expected version {VERSION}, found version {found}"),
        PlanError::Check => "expected a whole plan, found one cut off or damaged".to_owned(),
        PlanError::Section(section) => format!("section {section} is outside the file"),
        PlanError::Row(section, row) => format!("row {row} of section {section} points outside"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_without_path_and_version() {
        assert_eq!(short_name("/usr/lib/libfoo.so.1.2"), "libfoo.so");
        assert_eq!(short_name("/opt/app-1.2"), "app-1.2");
        assert_eq!(short_name(""), "");
    }

    #[test]
    fn a_function_without_a_name_is_one_of_its_image() {
        let mut catalogue = Catalogue::new(None, None);
        let a = catalogue.intern("+0x1234", "a", false, None);
        let b = catalogue.intern("+0x1234", "b", false, None);
        let again = catalogue.intern("+0x1234", "a", false, None);
        assert_eq!((a, b, again), (FunctionId(0), FunctionId(1), FunctionId(0)));
        assert_eq!(catalogue.functions[0].name, "a+0x1234");
        assert_eq!(catalogue.functions[0].linkage, "a+0x1234");
    }
}
