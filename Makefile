# The two commands of the README, and the ones that CONTRIBUTING.md names.
.PHONY: demo test events figures test-loaded quinn lint docs python-lock bench fuzz compiler

APUS = $(or $(CARGO_TARGET_DIR),target)/release/apus

# Builds the command and reproduces Table 3 of the Swift paper: a 5000-to-1 incast.
demo: $(APUS)
	$(APUS) reproduce swift/table3

# Everything that CI checks.
test:
	tools/test

# Renews the expected events of quick runs, after a change of results that is meant.
events: $(APUS)
	$(APUS) reproduce --all --quick --write-events crates/apus/assets/quick-events.txt

# The tests that own threads, sockets or processes, beside busy loops and pinned to one core.
test-loaded:
	tools/test-loaded busy
	tools/test-loaded pinned

# Formatting, lints, documentation and tests of crates/quinn, which is a workspace of its own because it needs quinn.
quinn:
	cd crates/quinn && cargo fmt --check && cargo clippy --all-targets --locked -- -D warnings && \
		RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked && cargo test --locked

# Formatting, lints and documentation only.
lint:
	tools/test lint

# Pins the packages that the tests of the Python package need, in their newest versions.
python-lock:
	target/python/venv/bin/uv pip compile --quiet --universal --upgrade --python-version 3.11 \
		--no-header python/requirements.in -o python/requirements.txt
	target/python/venv/bin/uv pip compile --quiet --universal --upgrade --python-version 3.11 \
		--no-header python/requirements-long.in -o python/requirements-long.txt

# The pictures of docs/report.md and the README, drawn by a report in Chromium.
figures: $(APUS)
	tools/check-report --figures

# The documentation as a site with search, in target/docs/site. The first run downloads the generator from
# PyPI.
docs:
	tools/docs/build

# The simulator's benchmarks and the instructions per packet-hop beside the recorded ones, then the benchmarks of the
# transport over UDP.
bench: $(APUS)
	tools/bench $(APUS)
	tools/instructions-per-hop $(APUS)
	cargo bench -p apus-udp --locked

# A minute of coverage-guided fuzzing per target.
fuzz:
	tools/fuzz

# A clear message if Rust is missing or too old.
compiler:
	@tools/check-compiler >/dev/null

.PHONY: $(APUS)
$(APUS): compiler
	cargo build --release --locked -p apus
