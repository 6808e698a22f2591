//! Functions whose call and return are one event.
//!
//! A *leaf* calls nothing, loops nowhere and waits for nothing: between its call and its return no
//! other event of the thread can lie, and a thread cannot hang in it. Its returns are left alone.

use lockstep_binary::Image;

use crate::computed::{Inside, inside};
use crate::domain::Domain;
use crate::flow::Leaving;
use crate::survey::{BranchKind, Survey};

/// Whether a function is a leaf.
pub(crate) fn is_leaf(
    image: &Image<'_>,
    survey: &Survey<'_>,
    domain: &Domain<'_>,
    function: u32,
) -> bool {
    let entry = domain.functions[function as usize].range;
    domain.ranges_of(function).all(|range| {
        let body = &survey.bodies[range];
        let traits = &body.traits;
        let ends_by_itself = !traits.calls && !traits.loops && !traits.waits && !traits.falls_out;
        ends_by_itself
            && body.undecodable.is_none()
            && !is_led_back(survey, domain, function, range, range == entry)
            && survey
                .ways_out_of(range)
                .iter()
                .all(|way| match way.leaving {
                    Leaving::Return { .. } => true,
                    // To another part.
                    Leaving::Jump { target } | Leaving::Conditional { target } => {
                        domain.function_at(survey, target) == Some(function)
                    }
                    Leaving::Computed(jump) => {
                        let goes = inside(image, survey, domain, way, &jump);
                        goes == Some(Inside::Known) && leads_on(survey, range, way.at)
                    }
                    Leaving::Slot { .. } | Leaving::Odd => false,
                })
    })
}

/// Whether another part leads into this one other than from the entry's range: a way back.
fn is_led_back(
    survey: &Survey<'_>,
    domain: &Domain<'_>,
    function: u32,
    range: usize,
    is_entry: bool,
) -> bool {
    let whole = &survey.ranges[range];
    let branches = survey.arriving_at(whole.address, whole.end());
    branches.iter().any(|branch| {
        let from = branch.range as usize;
        let is_own = from != range && domain.owner[from] == Some(function);
        is_own && (is_entry || from != domain.functions[function as usize].range)
    })
}

/// Whether the tables of a range are known and all lead on from the jump at `at`.
fn leads_on(survey: &Survey<'_>, range: usize, at: u64) -> bool {
    let whole = &survey.ranges[range];
    let tables = |branches: &[crate::survey::Branch]| {
        let of_range =
            |b: &&crate::survey::Branch| b.kind == BranchKind::Table && b.range as usize == range;
        branches.iter().filter(of_range).count()
    };
    let back = tables(survey.arriving_at(whole.address, at + 1));
    let on = tables(survey.arriving_at(at + 1, whole.end()));
    on > 0 && back == 0
}
