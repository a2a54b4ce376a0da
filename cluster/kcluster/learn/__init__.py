"""The course: lessons with questions, and exercises that are graded."""

from kcluster.learn.exercises import exercise_of
from kcluster.learn.grading import Grade, grade_file

__all__ = ["Grade", "exercise_of", "grade_file"]
