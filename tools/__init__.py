"""For maintainers: what builds, checks and publishes the course. Nothing in `lib` imports it.

* A machine: `check`, `lab`, `browser`, `offline`, `verify`.
* Pages: `course`, `site`, `report`, `pages`, `front`, `refresh`, `density`, `classroom`.
* Tables from `results/`: `table`, `results_pages`, `primary`, `notes`, `markers`.
* Data and encoders that are shipped: `mini_data`, `mini_spacy`, `pretrain*`, `generate`,
  `translations`, `sda_*`, `inspection`.
"""
