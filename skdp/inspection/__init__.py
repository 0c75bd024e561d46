"""Plots and reports of public or released values; plots import matplotlib when drawn."""

from skdp.inspection._additive_effects import AdditiveEffect, AdditiveEffectsDisplay
from skdp.inspection._coefficient_display import CoefficientDisplay
from skdp.inspection._coefficient_summary import coefficient_summary
from skdp.inspection._ledger_display import BudgetLedgerDisplay
from skdp.inspection._privacy_utility import PrivacyUtilityDisplay
from skdp.inspection._profile_display import PrivacyProfileDisplay
from skdp.inspection._report import PrivacyReport, privacy_report, report_schema
from skdp.inspection._topology_display import TopologyDisplay

__all__ = [
    "AdditiveEffect",
    "AdditiveEffectsDisplay",
    "BudgetLedgerDisplay",
    "CoefficientDisplay",
    "PrivacyProfileDisplay",
    "PrivacyReport",
    "PrivacyUtilityDisplay",
    "TopologyDisplay",
    "coefficient_summary",
    "privacy_report",
    "report_schema",
]
