//! What a function's code could call, whether or not a run came to it.

use crate::model::FunctionId;
use lockstep_format::plan::{Plan, function};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// What the code of a function says of calls. All empty where its image's plan does not tell.
///
/// Plans of older recorders tell calls alone: neither jumps to other functions nor whose address is taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Code {
    /// Its bytes, without those that a compiler moved elsewhere; of several functions of that name all together.
    pub length: u64,
    /// In how many places it calls each function, or ends with a jump to it.
    pub calls: BTreeMap<FunctionId, u32>,
    /// In how many places it calls what only a run can tell.
    pub computed: u32,
    /// The functions whose addresses it takes.
    pub takes: BTreeSet<FunctionId>,
    /// Whether code or data has its own address, so that it may be called without being named.
    pub is_taken: bool,
}

impl Code {
    /// Of the functions of an image; `of_row` names the function of a row of its plan.
    pub(crate) fn of_image(
        plan: &Plan<'_>,
        of_row: impl Fn(u32) -> Option<FunctionId>,
    ) -> FxHashMap<FunctionId, Self> {
        let mut codes: FxHashMap<FunctionId, Self> = FxHashMap::default();
        for (row, number) in plan.functions().zip(0..) {
            if let Some(id) = of_row(number).filter(|_| row.origin == function::OWN) {
                let code = codes.entry(id).or_default();
                code.length = code.length.saturating_add(row.length);
            }
        }
        for site in plan.call_sites() {
            let Some(caller) = of_row(site.caller) else {
                continue;
            };
            let code = codes.entry(caller).or_default();
            match of_row(site.callee) {
                Some(callee) => *code.calls.entry(callee).or_default() += 1,
                None => code.computed += 1,
            }
        }
        for (taker, taken) in plan.takers() {
            let (Some(taker), Some(taken)) = (of_row(taker), of_row(taken)) else {
                continue;
            };
            codes.entry(taken).or_default().is_taken = true;
            if taker != taken {
                codes.entry(taker).or_default().takes.insert(taken);
            }
        }
        codes
    }
}
