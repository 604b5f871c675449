//! `apus run --live`: shows the state of the runs on a terminal while they execute.

mod history;
mod panel;

use std::io::{IsTerminal as _, stderr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use apus_scenario::experiment::Step;
use apus_sim::monitor::Monitor;
use apus_sim::{Tell, Watch};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
    is_raw_mode_enabled,
};

use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Tracker;
use panel::Panel;

/// Time between two frames. Rationale: motion looks smooth, and drawing a frame takes a millisecond.
const FRAME: Duration = Duration::from_millis(100);

/// The terminal, which is restored when this value is dropped.
struct Screen(Terminal<CrosstermBackend<std::io::Stderr>>);

impl Screen {
    fn open() -> std::io::Result<Self> {
        enable_raw_mode()?;
        let opened = execute!(stderr(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stderr())));
        if opened.is_err() {
            close();
        }
        opened.map(Self)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        close();
    }
}

/// Restores the terminal. An error is ignored, as nothing more can be done.
fn close() {
    let _ = disable_raw_mode();
    let _ = execute!(stderr(), LeaveAlternateScreen, Show);
}

/// Restores the terminal if runs are shown, before the process exits. It returns after [`FRAME`] even if the terminal
/// accepts no output.
pub fn restore() {
    if !is_raw_mode_enabled().unwrap_or(false) {
        return;
    }
    let (done, closed) = mpsc::channel();
    std::thread::spawn(move || {
        close();
        let _ = done.send(());
    });
    let _ = closed.recv_timeout(FRAME);
}

/// Checks that standard error is a terminal.
///
/// # Errors
/// If standard error is not a terminal.
pub fn check_terminal() -> Result<(), Failure> {
    if stderr().is_terminal() {
        return Ok(());
    }
    let message =
        "--live: standard error is not a terminal; omit --live to print progress as lines";
    Err(Failure::Input(message.to_owned()))
}

/// Calls `start` on another thread to run the runs of `names`, and shows their state until they end. Standard output
/// stays free for the results. Warnings are printed at the end.
///
/// # Errors
/// If the terminal cannot be used.
pub fn show<R: Send>(
    names: &[&str],
    tracker: &Tracker,
    watch: &Watch,
    start: impl FnOnce(&Watch, &(dyn Fn(Step) + Sync)) -> R + Send,
) -> Result<R, Failure> {
    let panel = Arc::new(Mutex::new(Panel::new(names)));
    let (states, warnings) = (Arc::clone(&panel), Arc::clone(&panel));
    let monitor = Monitor {
        interval: FRAME,
        hear: Arc::new(move |run: &str, state| lock(&states).note(run, state)),
    };
    let tell = Tell(Arc::new(move |run: &str, what: &str| lock(&warnings).warn(run, what)));
    let own = Watch { monitor: Some(monitor), tell: Some(tell), ..watch.clone() };
    let failed = |error| Failure::Run(format!("--live: the terminal cannot be used: {error}"));
    let mut screen = Screen::open().map_err(failed)?;
    let drawn = std::thread::scope(|scope| {
        let runs = scope.spawn(|| start(&own, &|step| tracker.on_step(step)));
        let mut drawn = Ok(());
        while !runs.is_finished() {
            // If drawing fails, the runs continue.
            if drawn.is_ok() {
                drawn = frame(&mut screen, &panel, tracker, watch);
            } else {
                std::thread::sleep(FRAME);
            }
        }
        (runs.join(), drawn)
    });
    drop(screen);
    for warning in lock(&panel).warnings() {
        eprintln!("warning: {warning}");
    }
    match drawn {
        (Ok(results), Ok(())) => Ok(results),
        (Ok(results), Err(error)) => {
            eprintln!("warning: --live: the terminal cannot be used: {error}");
            Ok(results)
        }
        (Err(panic), _) => std::panic::resume_unwind(panic),
    }
}

/// Draws a frame and handles keys until the next frame is due.
fn frame(
    screen: &mut Screen,
    panel: &Mutex<Panel>,
    tracker: &Tracker,
    watch: &Watch,
) -> std::io::Result<()> {
    let stops = watch.stop.load(Ordering::Relaxed);
    let share = tracker.share();
    let text = tracker.describe();
    screen.0.draw(|frame| lock(panel).draw(frame, share, &text, stops))?;
    if !event::poll(FRAME)? {
        return Ok(());
    }
    let Event::Key(key) = event::read()? else { return Ok(()) };
    match key {
        KeyEvent { kind: KeyEventKind::Release, .. } => {}
        KeyEvent { code: KeyCode::Char('c'), modifiers: KeyModifiers::CONTROL, .. }
        | KeyEvent { code: KeyCode::Char('q') | KeyCode::Esc, .. } => end(watch),
        KeyEvent { code: KeyCode::Tab | KeyCode::Right | KeyCode::Down, .. } => {
            lock(panel).show_next(1);
        }
        KeyEvent { code: KeyCode::BackTab | KeyCode::Left | KeyCode::Up, .. } => {
            lock(panel).show_next(-1);
        }
        _ => {}
    }
    Ok(())
}

/// Ends the runs at their next step. The second call ends the process, like a second signal.
fn end(watch: &Watch) {
    if interrupt::is_first_request() {
        watch.stop.store(true, Ordering::Relaxed);
    }
}

fn lock(panel: &Mutex<Panel>) -> MutexGuard<'_, Panel> {
    panel.lock().unwrap_or_else(PoisonError::into_inner)
}
