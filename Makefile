# The two commands of the README, and the commands that CONTRIBUTING.md names.
.PHONY: demo test events figures test-loaded test-release quinn lint docs python-lock bench fuzz compiler

APUS = $(or $(CARGO_TARGET_DIR),target)/release/apus

# Builds the command and reproduces Table 3 of the Swift paper: a 5000-to-1 incast.
demo: $(APUS)
	$(APUS) reproduce swift/table3

# Runs the lints and tests that every change needs. CI (.ci/run) runs them and a few more.
test:
	tools/test

# Updates the expected events of quick runs after an intended change of results.
events: $(APUS)
	$(APUS) reproduce --all --quick --write-events crates/apus/assets/quick-events.txt

# Runs the tests that own threads, sockets or processes under busy loops and pinned to one core.
test-loaded:
	tools/test-loaded busy
	tools/test-loaded pinned

# Runs every experiment with one seed, counts instructions per packet-hop and runs random worlds in the release build.
test-release: $(APUS)
	tools/check-apart
	$(APUS) reproduce --all --quick --expect-events crates/apus/assets/quick-events.txt
	tools/instructions-per-hop $(APUS)
	$(APUS) worlds
	$(APUS) worlds --simulator --seeds 200

# Checks formatting, lints, documentation and tests of crates/quinn, a separate workspace because it needs quinn.
quinn:
	cd crates/quinn && cargo fmt --check && cargo clippy --all-targets --locked -- -D warnings && \
		RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked && cargo test --locked

# Checks formatting, lints and documentation only.
lint:
	tools/test lint

# Pins the newest versions of the packages that the tests of the Python package need.
python-lock:
	target/python/venv/bin/uv pip compile --quiet --universal --upgrade --python-version 3.11 \
		--no-header python/requirements.in -o python/requirements.txt
	target/python/venv/bin/uv pip compile --quiet --universal --upgrade --python-version 3.11 \
		--no-header python/requirements-long.in -o python/requirements-long.txt

# Draws the pictures of docs/report.md and the README from a report in Chromium.
figures: $(APUS)
	tools/check-report --figures

# Builds the documentation as a site with search in target/docs/site. The first run downloads the generator from PyPI.
docs:
	tools/docs/build

# Compares the simulator's benchmarks and instructions per packet-hop with the recorded ones, then runs the benchmarks
# of the transport over UDP.
bench: $(APUS)
	tools/bench $(APUS)
	tools/instructions-per-hop $(APUS)
	cargo bench -p apus-udp --locked

# Runs coverage-guided fuzzing for a minute per target.
fuzz:
	tools/fuzz

# Prints a clear message if Rust is missing or too old.
compiler:
	@tools/check-compiler >/dev/null

.PHONY: $(APUS)
$(APUS): compiler
	cargo build --release --locked -p apus
