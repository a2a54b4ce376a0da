"""The routes of the HTTP API, a module per subject.  Importing this registers all of them."""

from kcluster.web.api import actions as actions
from kcluster.web.api import advertised as advertised
from kcluster.web.api import clients as clients
from kcluster.web.api import clock as clock
from kcluster.web.api import clusters as clusters
from kcluster.web.api import events as events
from kcluster.web.api import evidence as evidence
from kcluster.web.api import forks as forks
from kcluster.web.api import metrics as metrics
from kcluster.web.api import openapi as openapi
from kcluster.web.api import page as page
from kcluster.web.api import predictions as predictions
from kcluster.web.api import processed as processed
from kcluster.web.api import replicas as replicas
from kcluster.web.api import stream as stream
from kcluster.web.api import waiting as waiting
