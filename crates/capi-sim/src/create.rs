//! Simulations from scenarios.

use std::ffi::c_char;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use apus_scenario::{Options, Scenario, Source, file};

use crate::handle::{apus_sim, c_text, text};

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_sim_create(
    scenario: *const c_char,
    error: *mut c_char,
    size: usize,
) -> *mut apus_sim {
    // SAFETY: the header requires a text.
    let scenario = unsafe { text(scenario, "scenario") };
    let made = scenario.and_then(|text| {
        create(Source { name: "scenario".to_owned(), text: text.to_owned() }, Path::new(""))
    });
    // SAFETY: as the header requires.
    unsafe { hand_out(made, error, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_sim_create_from_file(
    path: *const c_char,
    error: *mut c_char,
    size: usize,
) -> *mut apus_sim {
    // SAFETY: the header requires a text.
    let path = unsafe { text(path, "path") };
    let made = path.and_then(|name| {
        let text = file::read_text(Path::new(name), file::SCENARIO_BYTES)
            .map_err(|error| format!("{name}: {error}"))?;
        let folder = Path::new(name).parent().map(Path::to_owned).unwrap_or_default();
        create(Source { name: name.to_owned(), text }, &folder)
    });
    // SAFETY: as the header requires.
    unsafe { hand_out(made, error, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_sim_destroy(sim: *mut apus_sim) {
    if sim.is_null() {
        return;
    }
    // SAFETY: a handle that was not destroyed.
    let is_running = unsafe { (*sim).is_running.get() };
    if is_running {
        // SAFETY: as above. The run frees it when the callback has returned.
        unsafe { (*sim).is_destroyed.set(true) };
    } else {
        // SAFETY: made by `hand_out`, and no function of it is running.
        drop(unsafe { Box::from_raw(sim) });
    }
}

/// Reads a scenario and builds its simulation. Files that it names are looked for in `folder`.
fn create(source: Source, folder: &Path) -> Result<apus_sim, String> {
    let find = |name: &str| {
        let path: PathBuf = folder.join(name);
        let shown = path.display().to_string();
        let text = file::read_text(&path, file::DATA_BYTES)
            .map_err(|error| format!("{shown}: {error}"))?;
        Ok(Source { name: shown, text })
    };
    let build = || {
        let scenario = Scenario::read(&source, &find, &Options::default())
            .map_err(|error| error.to_string())?;
        let [run] = scenario.runs.as_slice() else {
            let count = scenario.runs.len();
            return Err(format!("the scenario has {count} runs; give one without variants"));
        };
        run.setup.live().map(apus_sim::new).map_err(|error| error.to_string())
    };
    catch_unwind(std::panic::AssertUnwindSafe(build))
        .unwrap_or_else(|_| Err("a bug of the simulator: it panicked".to_owned()))
}

/// Hands a simulation over to C, or the text of an error.
///
/// # Safety
/// `error` is NULL or valid for `size` bytes.
unsafe fn hand_out(
    made: Result<apus_sim, String>,
    error: *mut c_char,
    size: usize,
) -> *mut apus_sim {
    match made {
        Ok(sim) => Box::into_raw(Box::new(sim)),
        Err(why) => {
            if !error.is_null() && size > 0 {
                let why = c_text(&why);
                let length = cut(&why.to_string_lossy(), size - 1);
                // SAFETY: at most `size` bytes with the zero byte, as the caller promises.
                unsafe {
                    std::ptr::copy_nonoverlapping(why.as_ptr(), error, length);
                    error.add(length).write(0);
                }
            }
            std::ptr::null_mut()
        }
    }
}

/// Returns the length of the longest start of a text that ends with a whole character and has at most `most` bytes.
fn cut(text: &str, most: usize) -> usize {
    let mut length = text.len().min(most);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn the_text_of_an_error_is_cut_between_characters() {
        // "é" has two bytes, "√" three.
        for (size, expected) in
            [(1, ""), (2, "a"), (3, "a"), (4, "aé"), (6, "aé"), (7, "aé√"), (9, "aé√")]
        {
            let mut error = vec![b'x'; size];
            let made: Result<apus_sim, String> = Err("aé√".to_owned());
            // SAFETY: a buffer of this size.
            let sim = unsafe { hand_out(made, error.as_mut_ptr().cast(), size) };
            assert!(sim.is_null());
            let text = CStr::from_bytes_until_nul(&error).expect("a zero byte");
            assert_eq!(text.to_str(), Ok(expected), "{size}");
        }
    }
}
