"""For maintainers: what builds, checks and publishes the course. Nothing in `lib` imports it."""
