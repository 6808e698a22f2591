//! A concept lattice as a line diagram: the most general concept on top, each with its reduced
//! labels (attributes that begin there, traces that end there).

use crate::text::{px, shortened, shown};
use lockstep_compare::{Concept, Lattice};
use lockstep_trace::names_in_short;
use maud::{Markup, html};
use rust_sugiyama::configure::{Config, RankingType};
use rust_sugiyama::from_vertices_and_edges;
use std::fmt::Write;

/// A lattice with more concepts is a cloud of lines: it is not drawn.
pub const DRAWN: usize = 120;
/// Longest label line, in characters, and most lines of attributes.
const CHARACTERS: usize = 28;
const LINES: usize = 6;
const LINE_HEIGHT: f64 = 14.0;
const CHARACTER_WIDTH: f64 = 6.7;

/// The label of a concept.
struct Label {
    attributes: Vec<String>,
    objects: Option<String>,
    full: String,
}

impl Label {
    fn of(concept: &Concept) -> Self {
        let mut attributes: Vec<String> = concept
            .own_attributes
            .iter()
            .take(LINES)
            .map(|it| shortened(it, CHARACTERS))
            .collect();
        let more = concept.own_attributes.len() - attributes.len();
        if more > 0 {
            attributes.push(format!("and {more} more"));
        }
        let own = names_in_short(&concept.own_objects);
        let objects = (!own.is_empty()).then(|| shortened(&own, CHARACTERS));
        let full = format!(
            "{} traces: {}\n{} attributes: {}",
            concept.extent.len(),
            shown(&names_in_short(&concept.extent)),
            concept.intent.len(),
            shown(&concept.intent.join(", ")),
        );
        Self {
            attributes,
            objects,
            full,
        }
    }

    fn lines(&self) -> impl Iterator<Item = &String> {
        self.attributes.iter().chain(&self.objects)
    }

    /// Width and height of the box.
    fn size(&self) -> (f64, f64) {
        let longest = self
            .lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(0);
        let lines = self.lines().count();
        if lines == 0 {
            return (14.0, 14.0);
        }
        (
            longest as f64 * CHARACTER_WIDTH + 18.0,
            lines as f64 * LINE_HEIGHT + 12.0,
        )
    }
}

/// The diagram, or why there is none.
pub fn svg(lattice: &Lattice) -> Markup {
    let count = lattice.concepts.len();
    if count == 0 || count > DRAWN {
        return html! {
            p.faint { "The lattice has " (count) " concepts; up to " (DRAWN) " are drawn." }
        };
    }
    let labels: Vec<Label> = lattice.concepts.iter().map(Label::of).collect();
    let layout = Layout::of(lattice, &labels);
    html! {
        svg class="lattice" viewBox=(format!("0 0 {} {}", px(layout.width), px(layout.height)))
            width=(px(layout.width)) height=(px(layout.height)) role="img" aria-label="concept lattice" {
            @for path in &layout.lines {
                path class="line" d=(path) {}
            }
            @for (label, (x, y)) in labels.iter().zip(&layout.places) {
                @let (width, height) = label.size();
                @let top = y - height / 2.0 + 6.0 + LINE_HEIGHT / 2.0;
                g class="concept" {
                    rect x=(px(x - width / 2.0)) y=(px(y - height / 2.0)) width=(px(width)) height=(px(height)) rx="5" {
                        title { (label.full) }
                    }
                    @for (index, line) in label.attributes.iter().enumerate() {
                        text class="attribute" x=(px(*x)) y=(px(top + index as f64 * LINE_HEIGHT)) text-anchor="middle" dominant-baseline="central" { (line) }
                    }
                    @if let Some(objects) = &label.objects {
                        text class="object" x=(px(*x)) y=(px(top + label.attributes.len() as f64 * LINE_HEIGHT)) text-anchor="middle" dominant-baseline="central" { (objects) }
                    }
                }
            }
        }
    }
}

struct Layout {
    width: f64,
    height: f64,
    /// Centre of each concept.
    places: Vec<(f64, f64)>,
    /// Path of each covering pair.
    lines: Vec<String>,
}

impl Layout {
    fn of(lattice: &Lattice, labels: &[Label]) -> Self {
        let count = labels.len();
        let levels = levels(count, &lattice.covers);
        // A pair that spans several levels is routed through one point on each level between, so that
        // its line keeps clear of the concepts there.
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let mut vertices: Vec<(u32, (f64, f64))> = labels
            .iter()
            .enumerate()
            .map(|(index, label)| (number(index), label.size()))
            .collect();
        let mut edges = Vec::new();
        let mut routes = Vec::new();
        for &(upper, lower) in &lattice.covers {
            let mut route = vec![upper];
            for _ in levels[upper] + 1..levels[lower] {
                let point = vertices.len();
                vertices.push((number(point), (2.0, 2.0)));
                route.push(point);
            }
            route.push(lower);
            edges.extend(
                route
                    .windows(2)
                    .map(|pair| (number(pair[0]), number(pair[1]))),
            );
            routes.push(route);
        }
        let config = Config {
            vertex_spacing: 26.0,
            ranking_type: RankingType::Up,
            ..Config::default()
        };
        let mut places = vec![(0.0, 0.0); vertices.len()];
        // A lattice is connected, so there is one component; more would stand side by side.
        let mut right = 0.0;
        for (component, ..) in from_vertices_and_edges(&vertices, &edges, &config) {
            let edge = |sign: f64| {
                component
                    .iter()
                    .map(move |(vertex, (x, _))| x + sign * vertices_width(labels, *vertex) / 2.0)
            };
            let left = edge(-1.0).fold(f64::INFINITY, f64::min);
            let end = edge(1.0).fold(f64::NEG_INFINITY, f64::max);
            for (vertex, (x, y)) in &component {
                places[*vertex] = (x - left + right, *y);
            }
            right += end - left + 26.0;
        }
        let half = |index: usize| labels.get(index).map_or(1.0, |label| label.size().1 / 2.0);
        let top = (0..places.len())
            .map(|index| places[index].1 - half(index))
            .fold(f64::INFINITY, f64::min);
        for place in &mut places {
            place.0 += 8.0;
            place.1 += 8.0 - top;
        }
        let bottom = (0..places.len())
            .map(|index| places[index].1 + half(index))
            .fold(0.0, f64::max);
        let lines = routes
            .iter()
            .map(|route| {
                let mut path = String::new();
                for (index, vertex) in route.iter().enumerate() {
                    let (x, y) = places[*vertex];
                    let letter = if index == 0 { 'M' } else { 'L' };
                    // Writing to a string cannot fail.
                    let _ = write!(path, "{letter}{} {}", px(x), px(y));
                }
                path
            })
            .collect();
        places.truncate(count);
        Self {
            width: right - 26.0 + 16.0,
            height: bottom + 8.0,
            places,
            lines,
        }
    }
}

fn vertices_width(labels: &[Label], vertex: usize) -> f64 {
    labels.get(vertex).map_or(2.0, |label| label.size().0)
}

/// Length of the longest way from the top to each concept.
fn levels(count: usize, covers: &[(usize, usize)]) -> Vec<usize> {
    let mut levels = vec![0; count];
    // Covers are acyclic, so `count` rounds are enough; usually one or two change anything.
    for _ in 0..count {
        let mut changed = false;
        for &(upper, lower) in covers {
            if levels[lower] <= levels[upper] {
                levels[lower] = levels[upper] + 1;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    levels
}

/// The lattice in Graphviz' language.
pub fn dot(lattice: &Lattice) -> String {
    let mut text = String::from(
        "digraph lattice {\n  rankdir=TB; edge [dir=none]; node [shape=box, style=rounded, fontname=\"sans-serif\"];\n",
    );
    for (index, concept) in lattice.concepts.iter().enumerate() {
        let label = Label::of(concept);
        let lines: Vec<String> = label.lines().map(|line| quoted(line)).collect();
        let tip = quoted(&label.full);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  c{index} [label=\"{}\", tooltip=\"{tip}\"];",
            lines.join("\\n")
        );
    }
    for (upper, lower) in &lattice.covers {
        let _ = writeln!(text, "  c{upper} -> c{lower};");
    }
    text.push_str("}\n");
    text
}

/// Inside double quotes of Graphviz' language.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
