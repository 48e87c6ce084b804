//! A headless Chromium by the WebDriver protocol (<https://www.w3.org/TR/webdriver2/>): plain HTTP and JSON
//! on loopback.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{skip, wait_until};

/// A running chromedriver; it and its browsers end with this value.
pub(crate) struct Driver {
    child: Child,
    port: u16,
    profiles: tempfile::TempDir,
}

/// One browser window.
pub(crate) struct Browser<'a> {
    driver: &'a Driver,
    session: String,
}

impl Driver {
    /// Where there is a chromedriver.
    pub(crate) fn start() -> Option<Self> {
        // Port 0: chromedriver chooses a free port and prints it, so that nothing can take it in between.
        let child = Command::new("chromedriver")
            .args(["--port=0", "--log-level=SEVERE"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(_) => return skip("no chromedriver"),
        };
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let port = loop {
            let line = lines.next().expect("chromedriver says its port").expect("text");
            if let Some(rest) = line.split("on port ").nth(1) {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                if let Some(port) = digits.parse().ok().filter(|port| *port != 0) {
                    break port;
                }
            }
        };
        // Later output of chromedriver must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let profiles = tempfile::tempdir().expect("a directory for browser profiles");
        Some(Self { child, port, profiles })
    }

    pub(crate) fn open(&self, width: u32) -> Browser<'_> {
        let profile = tempfile::tempdir_in(self.profiles.path()).expect("a profile").keep();
        let mut arguments: Vec<String> = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ]
        .map(str::to_owned)
        .to_vec();
        arguments.push(format!("--user-data-dir={}", profile.display()));
        arguments.push(format!("--window-size={width},1000"));
        let answer = self.call(
            "POST",
            "/session",
            &json!({"capabilities": {"alwaysMatch": {
                "browserName": "chrome",
                "goog:chromeOptions": {"args": arguments},
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            }}}),
        );
        Browser { driver: self, session: answer["sessionId"].as_str().expect("a session").to_owned() }
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.try_call(method, path, body).expect("chromedriver answers");
        assert!(answer["value"]["error"].is_null(), "{method} {path}: {}", answer["value"]);
        answer["value"].clone()
    }

    fn try_call(&self, method: &str, path: &str, body: &Value) -> std::io::Result<Value> {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(std::io::Error::other)?;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer)?;
        Ok(serde_json::from_slice(&answer)?)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser<'_> {
    fn post(&self, command: &str, body: &Value) -> Value {
        self.driver.call("POST", &format!("/session/{}/{command}", self.session), body)
    }

    pub(crate) fn load(&self, file: &Path) {
        self.post("url", &json!({"url": format!("file://{}", file.display())}));
    }

    /// The value of a function body.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Runs `script` until it is true.
    pub(crate) fn wait_until(&self, script: &str) {
        wait_until(script, || self.run(script) == json!(true));
    }

    pub(crate) fn log(&self, kind: &str) -> Vec<Value> {
        self.post("se/log", &json!({"type": kind})).as_array().cloned().unwrap_or_default()
    }

    /// A command of the Chrome DevTools Protocol.
    pub(crate) fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    pub(crate) fn dark(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// From now on a telephone's screen of that width.
    pub(crate) fn telephone(&self, width: u32) {
        let screen = json!({"width": width, "height": 844, "deviceScaleFactor": 2, "mobile": true});
        self.devtools("Emulation.setDeviceMetricsOverride", &screen);
    }

    /// Pages loaded from now on run no script; [`Browser::run`] still does.
    pub(crate) fn disable_javascript(&self) {
        self.devtools("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    }

    /// Writes the page as pictures of at most `height` into the directory `REPORT_PICTURES`, if that is set.
    pub(crate) fn picture(&self, name: &str, height: u64) {
        let Ok(directory) = std::env::var("REPORT_PICTURES") else { return };
        let size = self.devtools("Page.getLayoutMetrics", &json!({}))["cssContentSize"].clone();
        let total = size["height"].as_f64().expect("a height") as u64;
        for (index, top) in (0..total).step_by(height as usize).enumerate() {
            let clip = json!({"x": 0, "y": top, "width": size["width"], "height": height.min(total - top), "scale": 1});
            let picture = self
                .devtools("Page.captureScreenshot", &json!({"clip": clip, "captureBeyondViewport": true}));
            let bytes = base64::Engine::decode(
                &base64::engine::general_purpose::STANDARD,
                picture["data"].as_str().expect("a picture"),
            );
            std::fs::write(format!("{directory}/{name}-{index}.png"), bytes.expect("base64"))
                .expect("written");
        }
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        // Also after a failed test, because the browser would outlive chromedriver. A panic here would hide
        // the panic of the test.
        let _ = self.driver.try_call("DELETE", &format!("/session/{}", self.session), &json!({}));
    }
}
