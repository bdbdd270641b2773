"""The typed records between stages; :data:`KINDS` names them all.

Each record is defined once, as a msgspec Struct. Its Arrow schema, JSON Schema,
DuckDB view and reference page come from that definition.
"""

from rstar2cli.records.base import Float32, Int32, Json, Record
from rstar2cli.records.conversation import Conversation, Message, ToolCall
from rstar2cli.records.metric import Metric
from rstar2cli.records.problem import AnswerKind, Problem
from rstar2cli.records.score import Score
from rstar2cli.records.selection import Selection
from rstar2cli.records.trajectory import CallRecord, Finish, Trajectory, Turn, Verdict

KINDS: dict[str, type[Record]] = {
    cls.record_name: cls for cls in (Problem, Conversation, Trajectory, Selection, Score, Metric)
}

__all__ = [
    "KINDS",
    "AnswerKind",
    "CallRecord",
    "Conversation",
    "Finish",
    "Float32",
    "Int32",
    "Json",
    "Message",
    "Metric",
    "Problem",
    "Record",
    "Score",
    "Selection",
    "ToolCall",
    "Trajectory",
    "Turn",
    "Verdict",
]
