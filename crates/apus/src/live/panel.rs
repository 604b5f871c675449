//! Layout of the display: progress, goodput and queues over time, the longest queues, links by utilisation, counts.

use apus_sim::monitor::{State, UTILISATION_CLASSES};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{
    Axis, Bar, BarChart, BarGroup, Block, Cell, Chart, Dataset, Gauge, GraphType, Paragraph, Row,
    Table,
};

use super::history::History;

/// Number of warnings on the display.
const SHOWN_WARNINGS: usize = 2;
/// Maximum number of warnings that are kept. Rationale: the results contain all of them.
const KEPT_WARNINGS: usize = 20;

/// State of the runs, and the run that is shown.
pub struct Panel {
    runs: Vec<Run>,
    /// The run that the user selected by a key; if none, the last run that reported its state.
    chosen: Option<usize>,
    latest: usize,
    warnings: Vec<String>,
}

struct Run {
    name: String,
    history: History,
}

impl Panel {
    pub fn new(names: &[&str]) -> Self {
        let run = |name: &&str| Run { name: (*name).to_owned(), history: History::default() };
        let runs = names.iter().map(run).collect();
        Self { runs, chosen: None, latest: 0, warnings: Vec::new() }
    }

    /// Records the state of a run.
    pub fn note(&mut self, name: &str, state: State) {
        if let Some(at) = self.runs.iter().position(|run| run.name == name) {
            self.runs[at].history.add(state);
            self.latest = at;
        }
    }

    /// Records a warning.
    pub fn warn(&mut self, run: &str, what: &str) {
        match self.warnings.len() {
            0..KEPT_WARNINGS => self.warnings.push(format!("{run}: {what}")),
            KEPT_WARNINGS => {
                self.warnings
                    .push("further flows without progress are only in the results".to_owned());
            }
            _ => {}
        }
    }

    /// Returns the warnings so far.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Selects the run that is `by` positions further.
    pub fn show_next(&mut self, by: isize) {
        let runs = self.runs.len() as isize;
        let shown = self.shown() as isize + by;
        self.chosen = Some(shown.rem_euclid(runs.max(1)) as usize);
    }

    fn shown(&self) -> usize {
        self.chosen.unwrap_or(self.latest)
    }

    /// Draws the display. `share` is the finished share of all runs, and `progress` describes it in words.
    pub fn draw(&self, frame: &mut Frame<'_>, share: f64, progress: &str, stops: bool) {
        let Some(run) = self.runs.get(self.shown()) else { return };
        let state = run.history.last();
        let rows = Layout::vertical([
            Constraint::Length(3),
            Constraint::Min(8),
            Constraint::Min(8),
            Constraint::Length(1),
            Constraint::Length(SHOWN_WARNINGS as u16 + 1),
        ]);
        let [head, charts, network, counts, foot] = rows.areas(frame.area());
        let title = match self.runs.len() {
            1 => format!(" {} ", run.name),
            runs => format!(" {} (run {} of {runs}) ", run.name, self.shown() + 1),
        };
        let gauge = Gauge::default()
            .block(Block::bordered().title(title))
            .gauge_style(Style::new().fg(Color::Blue))
            .ratio(share.clamp(0.0, 1.0))
            .label(progress.to_owned());
        frame.render_widget(gauge, head);
        let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(charts);
        chart(frame, left, "goodput of all flows, Gb/s", &run.history.goodput(), Color::Cyan);
        chart(frame, right, "bytes in all queues, kB", &run.history.queued(), Color::Yellow);
        let halves = Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]);
        let [left, right] = halves.areas(network);
        frame.render_widget(queues(state), left);
        frame.render_widget(utilisation(state), right);
        frame.render_widget(Paragraph::new(count_line(state)), counts);
        frame.render_widget(Paragraph::new(self.foot(stops)), foot);
    }

    fn foot(&self, stops: bool) -> Vec<Line<'_>> {
        let from = self.warnings.len().saturating_sub(SHOWN_WARNINGS);
        let warning =
            |text: &String| Line::styled(format!("warning: {text}"), Style::new().fg(Color::Red));
        let mut lines: Vec<Line<'_>> = self.warnings[from..].iter().map(warning).collect();
        let keys = if stops {
            "The runs end at their next step; q again, a second later, ends the process without results"
        } else if self.runs.len() > 1 {
            "q: end the runs and keep their results   Tab: next run"
        } else {
            "q: end the run and keep its results"
        };
        lines.push(Line::styled(keys, Style::new().add_modifier(Modifier::DIM)));
        lines
    }
}

/// Draws a line of numbers over simulated milliseconds.
fn chart(frame: &mut Frame<'_>, area: Rect, title: &str, points: &[(f64, f64)], colour: Color) {
    let end = points.last().map_or(1.0, |&(at, _)| at);
    let most = points.iter().map(|&(_, value)| value).fold(0.0, f64::max);
    let top = if most > 0.0 { most * 1.05 } else { 1.0 };
    let now = points.last().map_or(0.0, |&(_, value)| value);
    let line = Dataset::default()
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(Style::new().fg(colour))
        .data(points);
    let axis = |end: f64, labels: [String; 2]| Axis::default().bounds([0.0, end]).labels(labels);
    let chart = Chart::new(vec![line])
        .block(Block::bordered().title(format!(" {title}: {now:.1} ")))
        .x_axis(axis(end, ["0".to_owned(), format!("{end:.3} ms")]))
        .y_axis(axis(top, ["0".to_owned(), format!("{most:.1}")]));
    frame.render_widget(chart, area);
}

/// Returns the table of the ports with the longest queues.
fn queues(state: &State) -> Table<'_> {
    let row = |queue: &apus_sim::monitor::QueueState| {
        Row::new([
            Cell::from(queue.port.clone()),
            Cell::from(format!("{:>9.1}", queue.bytes as f64 / 1e3)),
            Cell::from(format!("{:>6.0} %", queue.utilisation * 100.0)),
            Cell::from(format!("{:>9}", queue.dropped_packets)),
        ])
    };
    let widths =
        [Constraint::Fill(1), Constraint::Length(9), Constraint::Length(8), Constraint::Length(9)];
    let header = Row::new(["port", "queue, kB", "  in use", "  dropped"])
        .style(Style::new().add_modifier(Modifier::BOLD));
    Table::new(state.longest_queues.iter().map(row), widths)
        .header(header)
        .block(Block::bordered().title(" longest queues "))
}

/// Returns the number of ports by utilisation since the last state.
fn utilisation(state: &State) -> BarChart<'_> {
    let width = 100 / UTILISATION_CLASSES;
    let bar = |(class, &count): (usize, &u64)| {
        Bar::default()
            .value(count)
            .label(Line::from(format!("<={:>3} %", (class + 1) * width)))
            .text_value(count.to_string())
    };
    let bars: Vec<Bar<'_>> = state.by_utilisation.iter().enumerate().map(bar).collect();
    BarChart::default()
        .direction(ratatui::layout::Direction::Horizontal)
        .bar_width(1)
        .bar_gap(0)
        .bar_style(Style::new().fg(Color::Green))
        .data(BarGroup::default().bars(&bars))
        .block(Block::bordered().title(" ports by utilisation "))
}

fn count_line(state: &State) -> String {
    let State { ops, dropped_packets, marked_packets, trimmed_packets, pauses, .. } = state;
    format!(
        "ops ended: {ops}   packets dropped: {dropped_packets}   marked: {marked_packets}   trimmed: \
         {trimmed_packets}   pauses: {pauses}"
    )
}

#[cfg(test)]
mod tests {
    use apus_sim::monitor::QueueState;
    use apus_units::Span;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    /// Returns the display of a panel as lines of text.
    fn picture(panel: &Panel, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("terminal");
        terminal.draw(|frame| panel.draw(frame, 0.25, "mine: 1.0 of 4.0 ms", false)).expect("draw");
        let buffer = terminal.backend().buffer().clone();
        let cell = |x, y| buffer[(x, y)].symbol().to_owned();
        (0..height).map(|y| (0..width).map(|x| cell(x, y)).collect()).collect()
    }

    /// 12.5 MB within 1 ms are 100 Gb/s.
    fn panel() -> Panel {
        let mut panel = Panel::new(&["mine", "other"]);
        let queue = QueueState {
            port: "switch 0 -> host 4".to_owned(),
            bytes: 123_400,
            utilisation: 0.97,
            dropped_packets: 7,
        };
        let mut by_utilisation = [0; UTILISATION_CLASSES];
        by_utilisation[9] = 3;
        let state = State {
            simulated: Span::from_ms(1),
            delivered_bytes: 12_500_000,
            ops: 42,
            dropped_packets: 7,
            queued_bytes: 123_400,
            longest_queues: vec![queue],
            by_utilisation,
            ..State::default()
        };
        panel.note("mine", state);
        panel
    }

    fn shows(picture: &[String], text: &str) -> bool {
        picture.iter().any(|line| line.contains(text))
    }

    #[test]
    fn the_picture_has_the_numbers_of_the_last_state() {
        let picture = picture(&panel(), 120, 40);
        for text in [
            "mine (run 1 of 2)",
            "mine: 1.0 of 4.0 ms",
            "goodput of all flows, Gb/s: 100.0",
            "bytes in all queues, kB: 123.4",
            "switch 0 -> host 4",
            "97 %",
            "ops ended: 42   packets dropped: 7",
            "Tab: next run",
        ] {
            assert!(shows(&picture, text), "{text}: {picture:#?}");
        }
    }

    #[test]
    fn a_key_shows_the_other_run_and_the_last_warnings_are_visible() {
        let mut panel = panel();
        panel.show_next(-1);
        panel.warn("mine", "flow 3 makes no progress");
        let picture = picture(&panel, 120, 40);
        assert!(shows(&picture, "other (run 2 of 2)"), "{picture:#?}");
        assert!(shows(&picture, "warning: mine: flow 3 makes no progress"), "{picture:#?}");
    }

    #[test]
    fn a_terminal_of_any_size_has_a_picture() {
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            assert_eq!(picture(&panel(), width, height).len(), usize::from(height));
        }
    }
}
