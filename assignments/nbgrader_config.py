"""nbgrader's settings for this course: run its commands in this folder, or copy the file into your own course."""

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "contrastive-sentence-embeddings"
c.ExecutePreprocessor.timeout = 180  # seconds a cell
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError()"}
# `nbgrader zip_collect` takes files called <student>__<assignment>.ipynb from downloaded/<assignment>/archive/
c.FileNameCollectorPlugin.named_regexp = r".*[/\\](?P<student_id>[^/\\]+?)__(?P<file_id>[^/\\]+)$"
