//! A plain line chart: values over a few steps, as SVG and as a table.

use std::fmt::Write;

/// One line.
#[derive(Debug, Clone)]
pub struct Line {
    /// What it is of.
    pub name: String,
    /// A value for each step, where there is one.
    pub values: Vec<Option<f64>>,
}

/// A chart.
#[derive(Debug, Clone)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The steps' names.
    pub across: Vec<String>,
    /// The lines.
    pub lines: Vec<Line>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 40.0;
const COLOURS: [&str; 8] = [
    "#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#d68910", "#555555", "#16a085", "#a04000",
];

impl Chart {
    /// A row a line, a column a step.
    pub fn csv(&self) -> String {
        let mut text = format!("line,{}\n", self.across.join(","));
        for line in &self.lines {
            let cells: Vec<String> = line
                .values
                .iter()
                .map(|value| value.map_or_else(String::new, |value| format!("{value:.6}")))
                .collect();
            let _ = writeln!(text, "{},{}", line.name, cells.join(","));
        }
        text
    }

    /// The picture.
    pub fn svg(&self) -> String {
        let values = || self.lines.iter().flat_map(|line| &line.values).flatten();
        let most = values().copied().fold(f64::MIN_POSITIVE, f64::max) * 1.05;
        let step = (WIDTH - LEFT - RIGHT) / (self.across.len().max(2) - 1) as f64;
        let x = |at: usize| LEFT + step * at as f64;
        let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / most;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"11\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>\n",
            escaped(&self.title)
        );
        for tick in 0..=4 {
            let value = most * f64::from(tick) / 4.0;
            let at = y(value);
            let _ = writeln!(
                text,
                "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.4}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                at + 4.0
            );
        }
        for (at, name) in self.across.iter().enumerate() {
            let _ = writeln!(
                text,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                x(at),
                HEIGHT - BOTTOM + 18.0,
                escaped(name)
            );
        }
        for (number, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            // Both sizes of eight programs are more lines than colours.
            let dashes = ["", " stroke-dasharray=\"5 3\"", " stroke-dasharray=\"1 3\""]
                [(number / COLOURS.len()).min(2)];
            let points: Vec<String> = line
                .values
                .iter()
                .enumerate()
                .filter_map(|(at, value)| Some(format!("{:.1},{:.1}", x(at), y((*value)?))))
                .collect();
            let _ = writeln!(
                text,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"{dashes}/>\
                 <text x=\"{}\" y=\"{}\" fill=\"{colour}\">{}</text>",
                points.join(" "),
                WIDTH - RIGHT + 10.0,
                TOP + 14.0 * number as f64 + 10.0,
                escaped(&line.name)
            );
        }
        text.push_str("</svg>\n");
        text
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::{Chart, Line};

    #[test]
    fn what_is_missing_is_left_out() {
        let chart = Chart {
            title: "a < b".to_owned(),
            across: vec!["1".to_owned(), "4".to_owned()],
            lines: vec![Line {
                name: "bt".to_owned(),
                values: vec![Some(1.5), None],
            }],
        };
        assert_eq!(chart.csv(), "line,1,4\nbt,1.500000,\n");
        assert!(chart.svg().contains("a &lt; b") && chart.svg().ends_with("</svg>\n"));
    }
}
