# Needs Java 17 as well.
python3 -m venv venv
. venv/bin/activate
pip install --quiet 'pyspark>=3.5,<3.6' setuptools
