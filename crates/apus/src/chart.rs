//! Chart of a sweep or a tuning, as SVG: one panel per metric, one line per setting of the other axes.

use std::fmt::Write;

use apus_sim::bounds::Bounds;

use crate::svg::{self, COLOURS, Towards, ValueAxis, escape};
use crate::sweep::Axis;
use crate::sweep::table::{Row, heading};
use crate::text::{bounds, number};

const PANEL_WIDTH: f64 = 420.0;
const PANEL_HEIGHT: f64 = 280.0;
/// Margins of the plot within a panel: left, top, right, bottom.
const MARGIN: [f64; 4] = [64.0, 34.0, 16.0, 46.0];
const PANELS_PER_ROW: usize = 2;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 18.0;
/// Draws the medians over the values of the first axis, in their given order.
pub fn draw(title: &str, axes: &[Axis], rows: &[Row], metrics: &[String]) -> String {
    let Some(first) = axes.first() else { return String::new() };
    let mut lines: Vec<String> = Vec::new();
    for row in rows {
        let label = label(axes, row);
        if !lines.contains(&label) {
            lines.push(label);
        }
    }
    let panel_rows = metrics.len().div_ceil(PANELS_PER_ROW);
    let width = PANEL_WIDTH * metrics.len().clamp(1, PANELS_PER_ROW) as f64;
    let legend = if lines.len() > 1 { LEGEND_LINE * lines.len() as f64 } else { 0.0 };
    let top = 36.0;
    let height = top + PANEL_HEIGHT * panel_rows as f64 + legend + 16.0;
    let mut svg = svg::begin(width, height);
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"22\" font-size=\"15\" text-anchor=\"middle\">{}</text>",
        width / 2.0,
        escape(title)
    );
    for (index, name) in metrics.iter().enumerate() {
        let x = PANEL_WIDTH * (index % PANELS_PER_ROW) as f64;
        let y = top + PANEL_HEIGHT * (index / PANELS_PER_ROW) as f64;
        let of_line = |line: &String| {
            let own = rows.iter().filter(|row| label(axes, row) == *line);
            own.map(|row| {
                let place = first.values.iter().position(|value| *value == row.values[0]);
                (place.unwrap_or(0), row.numbers[index].as_ref().map(|number| number.median))
            })
            .collect::<Vec<_>>()
        };
        let series: Vec<_> = lines.iter().map(of_line).collect();
        panel(&mut svg, (x, y), &heading(name), first, &series);
    }
    if lines.len() > 1 {
        for (index, line) in lines.iter().enumerate() {
            let y = top + PANEL_HEIGHT * panel_rows as f64 + LEGEND_LINE * index as f64 + 14.0;
            let colour = COLOURS[index % COLOURS.len()];
            let _ = writeln!(
                svg,
                "<rect x=\"20\" y=\"{}\" width=\"22\" height=\"4\" fill=\"{colour}\"/>\
                 <text x=\"50\" y=\"{y}\">{}</text>",
                y - 6.0,
                escape(line)
            );
        }
    }
    svg + "</svg>\n"
}

/// Returns the label of a row's line: the values of the other axes and the variant.
fn label(axes: &[Axis], row: &Row) -> String {
    let others = axes.iter().zip(&row.values).skip(1);
    let mut parts: Vec<String> =
        others.map(|(axis, value)| format!("{} = {value}", axis.key)).collect();
    parts.extend(row.variant.clone());
    parts.join(", ")
}

/// Draws one panel at `(x, y)`; the vertical axis begins at 0.
fn panel(
    svg: &mut String,
    (x, y): (f64, f64),
    heading: &str,
    axis: &Axis,
    series: &[Vec<(usize, Option<Bounds>)>],
) {
    let [left, top, right, bottom] = MARGIN;
    let (x0, x1) = (x + left, x + PANEL_WIDTH - right);
    let (y0, y1) = (y + PANEL_HEIGHT - bottom, y + top);
    let ends = series.iter().flatten().filter_map(|(_, value)| *value);
    let most = ends.map(|value| value.value().unwrap_or(value.lower)).fold(0.0, f64::max);
    let values = ValueAxis::new(most, y0, y1);
    let places = axis.values.len();
    let at_x = |place: usize| x0 + (x1 - x0) * (place as f64 + 0.5) / places as f64;
    let at_y = |value: f64| values.at(value);
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        (x0 + x1) / 2.0,
        y1 - 10.0,
        escape(heading),
        (x0 + x1) / 2.0,
        y0 + 36.0,
        escape(&axis.key)
    );
    values.draw(svg, x0, x1);
    // If the axis has many values, only some are labelled.
    let every = places.div_ceil(8);
    for (place, value) in axis.values.iter().enumerate().step_by(every) {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            at_x(place),
            y0 + 18.0,
            escape(value)
        );
    }
    for (index, points) in series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let known = points.iter().filter_map(|&(place, value)| Some((place, value?.value()?)));
        let path: Vec<String> = known
            .clone()
            .map(|(place, value)| format!("{:.1},{:.1}", at_x(place), at_y(value)))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (place, value) in known {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\">\
                 <title>{}: {}</title></circle>",
                at_x(place),
                at_y(value),
                escape(&axis.values[place]),
                number(value)
            );
        }
        let open = points.iter().filter_map(|&(place, value)| Some((place, value?)));
        for (place, value) in open.filter(|(_, value)| value.value().is_none()) {
            let title = format!("{}: {}; ops had not ended", axis.values[place], bounds(value));
            svg::censored(svg, (at_x(place), at_y(value.lower)), Towards::Top, colour, &title);
        }
    }
}
