//! A plan as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use lockstep_binary::display_name;
use lockstep_format::plan::{Plan, function, mechanism};

/// A plan as text for people: counts, what is not recorded by reason, and one line a function.
#[must_use]
pub fn explain(plan: &Plan<'_>) -> String {
    let mut text = String::new();
    let own = plan
        .functions()
        .filter(|f| f.origin == function::OWN)
        .count();
    let imported = plan.symbols() as usize - own;
    let (low, high) = plan.extent();
    let sites = plan.sites().count();
    let arena = plan.code().len();
    let fixups = plan.fixups().count();
    let refused = plan.refusals().count();
    let calls = plan.call_sites().count();
    // Writing into a String cannot fail.
    let _ = write!(
        text,
        "{} image, {low:#x}..{high:#x}\n\
         {own} own functions, {imported} library functions, {refused} refused or seen in part\n\
         {sites} sites, {arena} bytes of arena, {fixups} fix-ups, {calls} direct or indirect calls\n",
        plan.role().name(),
    );
    for (origin, name) in [(function::OWN, "own"), (function::IMPORT, "library")] {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for f in plan.functions().filter(|f| f.origin == origin) {
            *counts.entry(f.mechanism).or_default() += 1;
        }
        let counts: Vec<String> = counts
            .into_iter()
            .map(|(mechanism, count)| format!("{count} {}", word(mechanism)))
            .collect();
        let _ = writeln!(text, "{name} functions: {}", counts.join(", "));
    }
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for refusal in plan.refusals() {
        let reason = String::from_utf8_lossy(refusal.reason).into_owned();
        let name = display_name(&String::from_utf8_lossy(refusal.name));
        let line = format!("{:#x} {name}: {reason}", refusal.address);
        reasons
            .entry(kind_of_reason(&reason))
            .or_default()
            .push(line);
    }
    for (reason, lines) in &reasons {
        let _ = writeln!(text, "\nnot recorded ({}): {reason}", lines.len());
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
    }
    text.push('\n');
    for f in plan.functions() {
        let origin = if f.origin == function::OWN {
            "own   "
        } else {
            "import"
        };
        let mechanism = word(f.mechanism);
        let name = display_name(&String::from_utf8_lossy(f.name));
        let _ = writeln!(text, "{origin} {:#10x} {mechanism:15} {name}", f.address);
    }
    text
}

fn word(number: u32) -> &'static str {
    match number {
        mechanism::CALL_THROUGH => "call-through",
        mechanism::INSTANT => "instant",
        mechanism::JUMP => "jump",
        mechanism::VFORK => "vfork",
        mechanism::PATCHED_RETURNS => "patched returns",
        _ => "leaf",
    }
}

/// The reason without its addresses and counts, so that like reasons come together.
fn kind_of_reason(reason: &str) -> String {
    let without_number = |word: &str| {
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            "N".to_owned()
        } else {
            word.to_owned()
        }
    };
    reason
        .split(' ')
        .map(without_number)
        .collect::<Vec<_>>()
        .join(" ")
}
