//! What the code of both builds could call, and what compilers do with it.

use super::reached::Code;
use crate::Options;
use crate::difftrace::sequence::Lens;
use crate::difftrace::trees::Trees;
use lockstep_calltree::{FunctionKey, NodeId};
use lockstep_trace::threads::{self, Does};
use regex::Regex;
use rustc_hash::FxHashSet;
use std::sync::LazyLock;

/// Library functions that compilers expand, move and call by themselves.
static EXPANDED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?x)
    ^(mem(cpy|move|set|cmp|chr|pcpy) | str(n?len|n?cpy|n?cat|n?cmp|r?chr|p?brk|c?spn|str|dup) | l*abs | malloc | free | realloc
    | (is|to)(alnum|alpha|digit|lower|upper|print|punct|space|xdigit) | __ctype_\w+ | __errno_location | __tls_get_addr
    | (a?(sin|cos|tan)h?|atan2|sincos|sqrt|cbrt|hypot|pow|powi|exp|exp2|expm1|log|log2|log10|log1p|floor|ceil|trunc|fabs|fmax|fmin|fmod|fma|l*round|l*rint
      |nearbyint|copysign|remainder|erfc?|[lt]gamma|frexp|ldexp|scalbl?n|modf)[fl]?
    | _gfortran_(internal_(un)?pack|string_\w+|compare_string|concat_string|size\w*|reshape\w*|matmul\w*|spread\w*)
    | __(mul|div)[sdx]c3 | __powi[sd]f2 | __cxa_atexit | __stack_chk_fail | __fentry__ )$
  | ^(std|__gnu_cxx|__cxxabiv1):: | ^(void\ |[\w:]+\ )?operator\ (new|delete) | ^_ZN?K?S").ok()
});

/// Whether a function is one of them, or asks for what stays as it is (`omp_get_thread_num`).
pub(super) fn is_expanded(name: &str) -> bool {
    let is_known = |known: &Regex| known.is_match(name);
    threads::meaning(name).does == Does::Query || EXPANDED.as_ref().is_some_and(is_known)
}

/// What the code of both builds could call.
pub(super) struct Codes {
    pub(super) normal: Code,
    pub(super) faulty: Code,
}

impl Codes {
    pub(super) fn of(trees: &Trees) -> Self {
        let mut codes = Self {
            normal: Code::default(),
            faulty: Code::default(),
        };
        for run in trees.normals() {
            codes.normal.add(run.run, &run.functions);
        }
        codes.faulty.add(trees.last().run, &trees.last().functions);
        codes
    }

    /// Functions whose callers' code is as before.
    pub(super) fn alike(&self) -> FxHashSet<FunctionKey> {
        let changed = self.normal.changed(&self.faulty);
        let mut called = self.normal.called();
        called.retain(|it| !changed.contains(it));
        called
    }

    /// Those of the functions of each build alone that the other does not have.
    pub(super) fn absent(
        &self,
        trees: &Trees,
        alone: &[FxHashSet<FunctionKey>; 2],
    ) -> FxHashSet<FunctionKey> {
        let others = alone.iter().zip([&self.faulty, &self.normal]);
        let is_own = |key: &&FunctionKey| !trees.forest.function(**key).imported;
        let absent = others.flat_map(|(alone, other)| {
            let each = alone.iter().filter(is_own);
            each.filter(|it| other.lacks(**it, &trees.forest.function(**it).name))
        });
        absent.copied().collect()
    }
}

/// The trees of each run without what is left out.
pub(super) fn projected(trees: &mut Trees, options: &Options) -> Vec<Vec<NodeId>> {
    let lens = (!options.sweep).then(|| Lens::of(options));
    let mut projection = trees.projection(lens.as_ref(), &[]);
    trees.projected(&mut projection)
}

/// Functions that compilers may inline or expand.
pub(super) fn inlinable(trees: &Trees) -> Vec<bool> {
    let functions = trees.forest.functions().iter();
    functions
        .map(|it| !it.imported && it.name != "main" || is_expanded(&it.name))
        .collect()
}
