# Needs Python 3.11 or newer.
python3 -m venv venv
. venv/bin/activate
pip install --quiet "$HUDI_FAST"    # hudi-fast
