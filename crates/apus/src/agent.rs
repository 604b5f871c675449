//! Child processes that run this executable for a command. One line of standard input or output is one word or one JSON
//! value.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum number of bytes in a line from another machine. Rationale: lines between machines take a few hundred bytes.
pub const MAX_LINE: u64 = 64 << 10;
/// Maximum number of bytes in a line with the text of a key file, which stays on this machine. Rationale: a key file has at
/// most 1 MiB, and JSON writes a byte of it as at most 6.
pub const MAX_KEY_LINE: u64 = 8 << 20;

/// Reads a line of at most `most` bytes. Returns `None` at the end of the input.
///
/// # Errors
/// If reading fails; of kind `InvalidData` if the line is too long or not text.
pub fn read_line(input: &mut impl BufRead, most: u64) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let length = input.by_ref().take(most.saturating_add(1)).read_until(b'\n', &mut line)?;
    if length as u64 > most {
        let what = format!(
            "a line of more than {most} bytes arrived; the lines of `apus bench udp` are shorter, so check that the other end \
             is one of this version"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let line = String::from_utf8(line);
    let line = line.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok((length > 0).then_some(line))
}

/// A started process, on this or another machine. The process ends when its standard input is closed; dropping this
/// value closes it.
pub struct Agent {
    /// `None` if the process runs on another machine.
    child: Option<Child>,
    input: Box<dyn Write>,
    output: BufReader<Box<dyn Read>>,
    name: String,
}

impl Agent {
    /// Starts a process. `name` identifies it in errors, as in "host 3".
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(command: &mut Command, name: String) -> Result<Self, String> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| {
            format!("{} cannot be run: {error}", command.get_program().display())
        })?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a process has no pipes".to_owned());
        };
        let output = BufReader::new(Box::new(output) as Box<dyn Read>);
        Ok(Self { child: Some(child), input: Box::new(input), output, name })
    }

    /// Returns the process at the other end of a stream; the stream carries its standard input and output.
    ///
    /// # Errors
    /// If the stream cannot be cloned.
    pub fn connected(stream: TcpStream, name: String) -> Result<Self, String> {
        let output = stream.try_clone().map_err(|error| format!("{name}: {error}"))?;
        let output = BufReader::new(Box::new(output) as Box<dyn Read>);
        Ok(Self { child: None, input: Box::new(stream), output, name })
    }

    /// Writes a line to the process.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn tell(&mut self, line: &str) -> Result<(), String> {
        let told = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        told.map_err(|_| self.gone())
    }

    /// Writes a value to the process.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn tell_json(&mut self, value: &impl Serialize) -> Result<(), String> {
        self.tell(&serde_json::to_string(value).map_err(|error| error.to_string())?)
    }

    /// Reads a line from the process.
    ///
    /// # Errors
    /// If the process has ended, or has written anything other than text. Also if it runs on another machine and its line is
    /// longer than [`MAX_LINE`]. A child process runs this executable, and its results grow with the measurement.
    pub fn hear(&mut self) -> Result<String, String> {
        let most = if self.child.is_some() { u64::MAX } else { MAX_LINE };
        match read_line(&mut self.output, most) {
            Ok(Some(line)) => Ok(line),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(format!("{}: {error}", self.name))
            }
            Ok(None) | Err(_) => Err(self.gone()),
        }
    }

    /// Reads a value from the process.
    ///
    /// # Errors
    /// If the process has ended, or has written anything else.
    pub fn hear_json<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        let line = self.hear()?;
        serde_json::from_str(&line).map_err(|error| format!("{}: {error}: {line}", self.name))
    }

    /// Waits for a line with this word.
    ///
    /// # Errors
    /// If the process has ended, or has written anything else.
    pub fn expect(&mut self, word: &str) -> Result<(), String> {
        let line = self.hear()?;
        if line.trim() == word { Ok(()) } else { Err(format!("{} said {line}", self.name)) }
    }

    /// Closes the input of the process and waits for its end.
    pub fn end(self) {
        drop((self.input, self.output));
        // The exit status after the last answer is irrelevant.
        let _ = self.child.map(|mut child| child.wait());
    }

    /// Returns the error of a process that ended early. The process has written the reason to standard error, which
    /// both processes share.
    fn gone(&mut self) -> String {
        match &mut self.child {
            None => format!("the connection to {} ended early", self.name),
            Some(child) => {
                let how = child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
                format!("the process of {} ended early: {how}", self.name)
            }
        }
    }
}

/// Writes a line to the parent process. If the parent has ended, the closed input ends this process.
pub fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Writes a value as JSON to the parent process, as [`say`] does.
///
/// # Errors
/// If the value cannot be serialised as JSON.
pub fn say_json(value: &impl Serialize) -> Result<(), String> {
    say(&serde_json::to_string(value).map_err(|error| error.to_string())?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn lines_up_to_the_bound_are_read_and_a_longer_one_is_an_error() {
        let mut input = Cursor::new("four\nfour5\n");
        assert_eq!(read_line(&mut input, 5).expect("a line").as_deref(), Some("four\n"));
        let error = read_line(&mut input, 5).expect_err("6 bytes with the line break");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let mut last = Cursor::new("last");
        assert_eq!(read_line(&mut last, u64::MAX).expect("a line").as_deref(), Some("last"));
        assert_eq!(read_line(&mut last, u64::MAX).expect("the end"), None);
    }

    #[test]
    fn a_line_without_end_from_another_machine_is_an_error_that_names_it_and_the_bound() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("an address"));
        let (mut peer, address) = listener.accept().expect("a stream");
        let endless = thread::spawn(move || while peer.write_all(&[b'x'; 1 << 16]).is_ok() {});
        let name = format!("the server at {address}");
        let mut agent = Agent::connected(stream.expect("a stream"), name.clone()).expect("a clone");
        let error = agent.hear().expect_err("too long");
        let bound = format!("{name}: a line of more than {MAX_LINE} bytes arrived");
        assert!(error.starts_with(&bound), "{error}");
        agent.end();
        endless.join().expect("the writer ends with the stream");
    }
}
