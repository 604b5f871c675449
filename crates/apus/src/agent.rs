//! Child processes that run this executable for a command. One line of standard input or output is one word or one JSON
//! value.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

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
    /// If the process has ended.
    pub fn hear(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(1..) => Ok(line),
            Ok(0) | Err(_) => Err(self.gone()),
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
