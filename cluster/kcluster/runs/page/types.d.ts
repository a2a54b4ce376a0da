// What passes between the modules: rows as the server sends them, trees, views.
// Rows are those of runs/record.py and evidence/rows.py; times are in ms of the cluster's clock.

import type { Model, Partition } from "./model.js";
import type { Page } from "./page.js";

// --------------------------------------------------------------------------------- trees

export type Child = Tree | string | number;
/** What may stand inside an element; null, false and "" are left out. */
export type Inside = Child | null | undefined | false | Inside[];
export interface Tree {
  tag: string;
  key: string;
  props: Props;
  inside: Child[];
}
type On<E> = ((event: E & { currentTarget: HTMLElement; target: HTMLElement }) => void) | null;
export interface Props {
  key?: string | number;
  onclick?: On<MouseEvent>;
  onkeydown?: On<KeyboardEvent>;
  oninput?: ((event: { target: HTMLInputElement }) => void) | null;
  onchange?: ((event: { target: HTMLSelectElement }) => void) | null;
  onsubmit?: ((event: SubmitEvent & { target: HTMLFormElement }) => void) | null;
  [name: string]: unknown;
}

export interface Tab {
  /** The name of its view in addresses: #view=key. */
  key: string;
  title: string;
  /** Whether the view shows a run as a whole, not at a moment; only pages of a run have it. */
  isOfRun?: boolean;
  /** Whether there is something for it to show; without this there always is. */
  isNeeded?(model: Model): boolean;
}
/** What a view that not every page has adds to the view of a client. */
export type ClientCard = (page: Page, client: string) => Inside;
export interface View {
  /** The view at the page's moment. */
  tree(page: Page): Inside[];
  /** What stands above the view and its side, and below them. */
  above?(page: Page): Inside[];
  below?(page: Page): Inside[];
  /** What it adds to the head: a choice, the newest event. */
  choice?(page: Page): Inside;
  newest?(page: Page): Inside[];
  side?(page: Page): Inside[];
  /** The bar of time. */
  bar?(page: Page): Inside[];
  /** What keys do there, before those of the page. */
  keys?(page: Page): { [key: string]: () => void };
  /** Called in each frame, with the elements there; returns whether something still moves. */
  drawn?(page: Page): boolean;
  /** Called when another view is shown instead. */
  left?(): void;
}

// ---------------------------------------------------------------------------------- rows

/** The fields of events that the page reads; a kind has some of them. */
export interface EventFields {
  kind: string;
  broker?: number;
  how?: string;
  topic?: string;
  partition?: number;
  leader?: number;
  epoch?: number;
  source?: number;
  destination?: number;
  links?: [number, number][];
  remaining?: [number, number][];
  undone?: boolean;
  latency_us?: number;
  loss?: number;
  bytes_per_s?: number;
  resource_type?: string;
  node?: number;
  client_id?: string;
  silent_ms?: number;
  from_offset?: number;
  to_offset?: number;
  high_watermark?: number;
  leader_end_offset?: number;
}
export interface NoteRow {
  id: [number, number];
  at_ms: number;
  event: EventFields;
  cause: [number, number] | null;
  subject: string;
  text: string;
  mood?: Mood;
  lane?: string;
  short?: string;
}
export type Mood = "bad" | "good" | "plain";
export interface LeaderRow extends OfPartition {
  at_ms: number;
  leader: number;
  leader_epoch: number;
  isr: number[];
  elr: number[];
  replicas: number[];
}
export interface MoveRow extends OfPartition {
  at_ms: number;
  broker: number;
  log_end_offset: number;
  high_watermark: number;
  last_stable_offset?: number;
}
export interface AppendRow extends OfPartition {
  at_ms: number;
  broker: number;
  epoch: number;
  base_offset: number;
  last_offset: number;
  client: string;
  isr: number[];
}
export interface EpochsRow extends OfPartition {
  at_ms: number;
  broker: number;
  start_offset: number;
  epochs: Runs;
}
export interface ExchangeRow extends OfPartition {
  client: string;
  at_ms: number;
  asked_ms: number;
  answered_ms: number;
  broker: number;
  api: string;
  partitions: number;
  error: string;
  first: number;
  last: number;
  leader: number;
  leader_epoch: number;
  /** The exchanges for which it stands; without it one. */
  times?: number;
}
export interface BeliefRow extends OfPartition {
  client: string;
  at_ms: number;
  leader: number;
  leader_epoch: number;
}
export interface GroupRow {
  group: string;
  at_ms: number;
  kind: string;
  state: string;
  epoch: number;
  coordinator: number;
  members: { id: string; client: string; assignment: Pairs }[];
}
export interface TransactionStateRow {
  transactional_id: string;
  at_ms: number;
  state: string;
  producer_id: number;
  producer_epoch: number;
  partitions: Pairs;
  coordinator: number;
}
export interface LoginRow {
  at_ms: number;
  client: string;
  client_id: string;
  broker: number;
  listener: string;
  mechanism: string;
  principal: string;
  connections: number;
  ends_ms: number;
  problem: string;
}
export interface CredentialRow {
  at_ms: number;
  kind: string;
  owner: string;
  name: string;
  state: string;
  until_ms: number;
}
export interface CommitRow extends OfPartition {
  group: string;
  at_ms: number;
  offset: number;
  error: string;
}
/** A message from one node to another, evidence/watching.py; times in µs. */
export interface MessageRow {
  source: number;
  destination: number;
  number: number;
  is_answer: boolean;
  api: string;
  sent_us: number;
  /** -1: it is lost. */
  arrives_us: number;
  parts: Part[];
}
/** Of the answer to a fetch. */
export type Part = [topic: string, partition: number, first: number, last: number, mark: number];
export interface SessionRow {
  at_ms: number;
  broker: number;
  expires_ms: number;
}
/** A consumer's fetch that waits at a broker. */
export interface AskingRow {
  at_ms: number;
  client: string;
  broker: number;
  partitions: string[];
}
export interface WaitingRow extends OfPartition {
  at_ms: number;
  client: string;
  count: number;
  oldest_ms: number;
}
interface OfPartition {
  topic: string;
  partition: number;
}
export type Pairs = [string, number][];
/** The runs of a log: [leader epoch, its first offset], ascending. */
export type Runs = [number, number][];

/** Rows by their fields in RunRecord, of the stream or of a run. */
export interface Rows {
  notes?: Iterable<NoteRow>;
  leaders?: Iterable<LeaderRow>;
  moves?: Iterable<MoveRow>;
  appends?: Iterable<AppendRow>;
  epochs?: Iterable<EpochsRow>;
  exchanges?: Iterable<ExchangeRow>;
  beliefs?: Iterable<BeliefRow>;
  groups?: Iterable<GroupRow>;
  transaction_states?: Iterable<TransactionStateRow>;
  commits?: Iterable<CommitRow>;
  logins?: Iterable<LoginRow>;
  credentials?: Iterable<CredentialRow>;
  messages?: Iterable<MessageRow>;
  sessions?: Iterable<SessionRow>;
  asking?: Iterable<AskingRow>;
  waiting?: Iterable<WaitingRow>;
}

/** What checks/verdict.py says of a run. */
export interface Verdict {
  outcome: string;
  reason?: string;
  degraded_lines?: string[];
  anomalies?: AnomalyValues[];
  windows?: WindowValues[];
  violations?: { name: string; subject: string; text: string; at_ms: number }[];
  sent?: number;
  acked?: number;
  failed?: number;
  unknown?: number;
  read?: number;
  /** Bad habits of clients, as far as they were judged. */
  manners?: Manner[];
}

export interface Manner {
  habit: string;
  client: string;
  text: string;
  advice: string;
  first_ms: number;
}

export interface LinkValues {
  at_ms: number;
  text: string;
  note_id?: [number, number] | null;
}
export interface AnomalyValues {
  name: string;
  partition: [string, number];
  text: string;
  count: number;
  allowed: string;
  at_ms: number;
  chain: LinkValues[];
}
/** Of unavailability. */
export interface WindowValues {
  kind: string;
  partition: [string, number];
  from_ms: number;
  to_ms: number;
  is_over: boolean;
  clients: string[];
  errors: string[];
  reasons: LinkValues[];
}
/** What an application missed, repeated or did out of order. */
export interface Problem {
  problem: string;
  topic: string;
  partition: number;
  first: number;
  last: number;
  count: number;
  text: string;
  /** When its first and its last record were appended, for the last time; null: not recorded. */
  from_ms: number | null;
  to_ms: number | null;
}

/** What the page of a run opens with, carried.py. */
export interface Carried {
  run: {
    name: string;
    clock: string;
    seed: number;
    outcome: string;
    passed: boolean;
    failures: string[];
    story: string;
    replay: string;
    began: number;
    end: number;
    brokers: { id: number; rack: string }[];
  };
  verdict: Verdict | null;
  /** Of the class that watched this run. */
  lessons: ReplayedCard[];
  problems: Problem[];
  /** Rows of (ms, count); ended: (ms, acked, failed, unknown, longest ms). */
  clients: {
    name: string;
    sent: number[][];
    ended: number[][];
    reads: number[][];
    errors: [at: number, api: string, error: string, about: string, count: number][];
  }[];
  /** By topic: rows of (ms, count). */
  processed: { [topic: string]: number[][] };
  /** Of the topics that applications process. */
  commits: Partial<Columns<CommitRow>>;
  tables: Tables;
}
/** Tables as columns, by their fields in RunRecord; what only other views draw comes later. */
export type Tables = { [table: string]: { [column: string]: unknown[] } };
type Columns<Row> = { [Name in keyof Row]: Row[Name][] };

// --------------------------------------------------------- rows as the model keeps them, by `at`

export interface Note {
  id: string;
  at: number;
  kind: string;
  event: EventFields;
  cause: string | null;
  subject: string;
  text: string;
  mood: Mood;
  /** Where a timeline shows it: actions, control, b1, p:orders-0; "" for nowhere. */
  lane: string;
  /** A short text of an action. */
  short: string;
  /** Whether it is a detail of another event. */
  isQuiet: boolean;
  /** Whether it is an event to read. */
  isStory: boolean;
}
export interface Registration {
  at: number;
  leader: number;
  epoch: number;
  isr: number[];
  elr: number[];
  replicas: number[];
  deleted: boolean;
}
export interface Batch {
  at: number;
  broker: number;
  epoch: number;
  base: number;
  last: number;
  client: string;
  isr: number[];
}
export interface Process {
  at: number;
  state: string;
  how: string;
  note: Note | null;
}
export interface Controller {
  at: number;
  state: string;
  leader: number | null;
  epoch?: number;
}
export type At<Row> = Row & { at: number };
export interface Client {
  name: string;
  exchanges: At<ExchangeRow>[];
  beliefs: Map<string, At<BeliefRow>[]>;
  /** When its newest fetch of each broker arrived there. */
  asking: Map<number, number>;
  /** `1 orders-0`: it has fetched orders-0 from broker 1. */
  fetched: Set<string>;
}
export interface Broker {
  id: number;
  process: Process[];
  fenced: { at: number; fenced: boolean; note: Note }[];
  sessions: { at: number; expires: number }[];
}
/** A request of one node to another, and its answer; times in ms, with fractions. */
export interface Call {
  /** When it was sent. */
  at: number;
  from: number;
  to: number;
  api: string;
  /** When it arrives; null: it is lost. */
  arrives: number | null;
  answer: { at: number; arrives: number | null; parts: Part[] } | null;
  /** When it ended without an answer, if that is known. */
  ended?: number;
}
export interface Link {
  source: number;
  destination: number;
  cuts: { at: number; cut: boolean; note: Note }[];
  shapes: { at: number; text: string }[];
}

// -------------------------------------------------------------------------- values that are drawn

export interface ReplicaAt {
  broker: number;
  end: number;
  mark: number;
  stable: number;
  process: Process;
  fenced: boolean;
  standing: Standing;
  runs: Runs;
  start: number;
  /** The first offset whose record is not the leader's. */
  diverges: number;
}
export type Standing = "leader" | "isr" | "elr" | "out";
export interface PartitionAt {
  registration: Registration | null;
  replicas: ReplicaAt[];
  leader: ReplicaAt | null;
}
/** From offsets to pixels. */
export interface Scale {
  start: number;
  first: number;
  end: number;
  cell: number;
  /** The width of what is drawn as runs. */
  runs: number;
  x: (offset: number) => number;
}
/** Requests of a client in a row that are alike. */
export interface Rung {
  row: ExchangeRow & { at: number };
  answered: boolean;
  error: string;
  count: number;
}
export interface Point {
  x: number;
  y: number;
}
/** Where the nodes of a cluster stand, as boxes by their centres. */
export interface Place {
  width: number;
  height: number;
  isGrid: boolean;
  controller: Box;
  broker(id: number): Box;
  client(name: string): Box;
}
/** A partition that a broker leads. */
export interface Lead {
  partition: Partition;
  registration: Registration;
}
/** A record that was chosen. */
export interface Chosen {
  partition: Partition;
  offset: number;
  epoch: number | null;
  broker: number;
}

/** An action of the scenario grammar, and its words on a menu. */
export type Action = { [name: string]: unknown };
export type ActionItem = [string, Action];

/** An entry of a menu, as an action declares it (actions/menu.py). */
export interface MenuItem {
  verb: string;
  of: "broker" | "link" | "partition" | "follower";
  words: string;
  value: string | { [key: string]: string | boolean } | null;
  when: string[];
}

export interface LessonCard {
  part: string;
  lesson: string;
  text: string;
  question: string;
  choices: string[];
  right: number | null;
  because: string;
  after: string;
  from_s: number;
  until_s: number;
  /** What the lesson waits for. */
  awaits: "" | "answer" | "go_on";
  /** The class's answer. */
  given: number | null;
  voters: number;
  /** By choice, once the answer is shown. */
  votes: number[];
  vote_at: VotePlace | null;
}
/** Where phones vote; the dark modules of its QR code, `size` wide. */
export interface VotePlace {
  url: string;
  path: string;
  size: number;
}
/** A card of a class that is over, and the moment from which it was shown. */
export interface ReplayedCard extends LessonCard {
  at: number;
}
export interface Question {
  text: string;
  partition: string;
  reason: string;
  choices: string[];
  /** The index of the right choice. */
  answer: number;
}

// ------------------------------------------------------------------------------- the server

export interface Address {
  base: string;
  id: string;
  token: string | null;
}
/** An answer that refuses, RFC 9457. */
export interface ProblemDetail {
  title?: string;
  detail?: string;
  errors?: { message?: string; detail?: string }[];
  problems?: { message?: string; detail?: string }[];
}
export interface ClockState {
  paused?: boolean;
  speed?: number;
  now_ms?: number;
  complete?: boolean;
}
export interface StartedClient {
  name: string;
  stopped_ms: number;
}
export interface FutureAnswer {
  rows: Rows;
  until_ms: number;
  verdict: Verdict | null;
  problems: string[];
}
export interface QuestionsAnswer {
  questions: {
    text: string;
    partition: string;
    choices: { value: unknown; text: string }[];
    answer: unknown;
    reason: string;
  }[];
}
export interface Future {
  model: Model;
  verdict: Verdict | null;
  problems: string[];
}

// --------------------------------------------------------------------------------- the page

/** What is asked in the dialog of a "what if", and what came out. */
export interface Fork {
  /** Of the moment at which the future begins. */
  at: number;
  words: string;
  action: Action | null;
  /** The moment that is shown of the futures. */
  shown: number;
  busy?: boolean;
  error?: string;
  moment?: number;
  futures?: { here: Future; there: Future; difference: string; assumptions?: string[] };
}
export interface Prediction {
  questions: Question[];
  answers: number[];
  since: number;
  isOpen: boolean;
}
/** A message on its way from one element (b1, cshop) to another, or waiting at its end. */
export interface Journey {
  kind: string;
  from: string;
  to: string;
  share: number;
  isLost?: boolean;
  /** Offsets of the records that it carries. */
  cells?: number[];
  words?: string;
}
/** A time in which no client could write to a partition.  null: it has not happened yet. */
export interface Gap {
  leader: number;
  from: number;
  noticed: number | null;
  elected: number | null;
  written: number | null;
}
/** A parameter of the past; `value`: null if clients differ. */
export interface Parameter {
  name: string;
  value: number | string | null;
  least: number;
  most: number;
  step: number;
  unit: string;
  choices: string[];
}
export type ParameterValues = { [name: string]: number | string };
/** A gap of a past that was played, in ms since the past began. */
export interface GapValues {
  leader: number;
  from_ms: number;
  noticed_ms: number | null;
  elected_ms: number | null;
  written_ms: number | null;
}
export interface ReplayAnswer {
  difference: string;
  facts: {
    gaps: [GapValues | null, GapValues | null];
    here: { until_ms: number };
    there: { until_ms: number };
  };
  assumptions: string[];
}
/** A gap, if there is one, and the end of what is known of it. */
export interface PlayedGap {
  gap: Gap | null;
  until: number;
}
/** Records that fall off a replica's log. */
export interface Fall {
  broker: number;
  /** The first offset that falls, and the end of the log until then. */
  to: number;
  from: number;
  runs: Runs;
  /** How many of them were acked. */
  acked: number;
  /** How many of them were below the replica's own high watermark. */
  committed: number;
  /** Whether they fell without a word of the leader, as before KIP-101. */
  isUnasked: boolean;
  /** Whether the ISR had no other member when they were appended. */
  wasAlone: boolean;
  /** How much of the fall is over. */
  share: number;
}
export interface Box extends Point {
  width: number;
  height: number;
}
/** Points, and the length of the route up to each. */
export interface Route {
  points: Point[];
  lengths: number[];
}
/** What the drawing of a log needs of the page. */
export interface LogPage {
  model: Model;
  selected: Chosen | null;
  select(chosen: Chosen | null): void;
}

// ------------------------------------------------------------------------------- the timeline

/** A state for a time, and the event that began it. */
export interface SpanOf {
  from: number;
  to: number;
  what: string;
  note: Note | null;
}
export interface BrokerFacts {
  id: number;
  rack: string;
  states: SpanOf[];
  fenced: SpanOf[];
  cuts: SpanOf[];
}
/** A link of a chain of causes. */
export interface ChainLink {
  at: number;
  text: string;
  note: Note | null;
  lane: string;
}
export interface Window {
  kind: string;
  partition: string;
  from: number;
  to: number;
  isOver: boolean;
  clients: string[];
  errors: string[];
  chain: ChainLink[];
}
export interface Anomaly {
  name: string;
  partition: string;
  text: string;
  count: number;
  allowed: string;
  at: number;
  chain: ChainLink[];
}
/** Where a log has what the application did wrong. */
export interface Mark {
  partition: string;
  isMissed: boolean;
  first: number;
  from: number;
  last: number;
  to: number;
  text: string;
}
export type ClientFacts = Carried["clients"][number] & { waiting(at: number): number };
export interface ApplicationFacts {
  topic: string;
  processed: number[][];
  commits: { at: number; group: string; error: string; offsets: string[] }[];
  problems: string;
}
export interface Surface {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  /** From times to pixels. */
  x: (at: number) => number;
  /** The span of time that is visible. */
  from: number;
  to: number;
}
/** A line of a tooltip; `why`: a cause. */
export type Line = string | { mood: string; text: string } | { why: string; at?: number };
export interface Lane {
  key: string;
  title: string;
  sub: string;
  colour?: string;
  height: number;
  /** Its height when expanded, if it can be. */
  tall?: number;
  partition?: Partition;
  notes: Note[];
  anomalies: Anomaly[];
  windows: Window[];
  paint(surface: Surface): void;
  /** Lines of a tooltip; `reach`: the time of a few pixels. */
  describe(at: number, reach: number): Line[];
}
/** What was chosen on the timeline. */
export interface Selection {
  title: string;
  at?: number;
  mood: string;
  lines: string[];
  links: ChainLink[];
  note?: Note;
}
