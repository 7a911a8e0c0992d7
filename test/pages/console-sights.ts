import type { ConsoleContext, ConsoleView } from '../../lib/pages/console/index.ts'
import { type EventsView, eventsPage } from '../../lib/pages/console/events.ts'
import { findPage } from '../../lib/pages/console/find.ts'
import { jobsPage } from '../../lib/pages/console/jobs.ts'
import { overviewPage } from '../../lib/pages/console/overview.ts'
import { type PeopleView, peoplePage } from '../../lib/pages/console/people.ts'
import { type PersonAct, type PersonView, personPage } from '../../lib/pages/console/person.ts'
import { settingsPage } from '../../lib/pages/console/settings.ts'
import { zonePage } from '../../lib/pages/console/zone.ts'
import type { Part } from '../../lib/pages/parts.ts'
import { JOB_KINDS } from '../../lib/work/jobs.ts'
import type { Event } from '../../schemas/event.ts'
import { REASONS, type Reason } from '../../schemas/reason.ts'
import { ATTENTION_CODES } from '../../schemas/status.ts'
import type { Job } from '../../schemas/support.ts'
import type { UserItem } from '../../schemas/user.ts'
import { HOSTILE } from './console-visits.ts'
import { LONG } from './look.ts'

/** A page of the console that is rendered without a service. */
export type ConsoleRow = [row: string, render: (context: ConsoleContext) => Part]

const at = '2026-11-20T09:30:00.000Z'
const ID = '6567c0d2a4b1e8f90a1b2c3d'
const SECTIONS = ['overview', 'people', 'clients', 'events', 'jobs', 'settings'] as const

const view: ConsoleView = {
  base: '/admin',
  sections: SECTIONS,
  maySearch: true,
  account: 'root@northwind.example',
  xsrf: 'x',
  isFresh: true,
  again: '/account/sign-in?next=console',
  calls: ['GET /user/list?limit=25', `GET /user/list?search=${LONG}`],
  api: 'https://id.example/api/v1',
  commands: ['user list --search WORDS', `user show ${LONG}`]
}
const longView: ConsoleView = { ...view, account: `${LONG.toLowerCase()}@example.com`, isFresh: false, sought: HOSTILE.join(' '), error: ({ console: own }) => own.refused({ reason: `${LONG}: must be shorter` }) }

const user: UserItem = { user_id: ID, account: 'ann@example.com', name: 'Ann Miller', email: 'ann@example.com', email_verified_at: at, roles: { support: true }, info: {}, created_at: at, modified_at: at }
const hostile: UserItem = {
  user_id: LONG.slice(0, 128),
  account: `${LONG.toLowerCase()}@example.com`,
  name: HOSTILE.join(' '),
  email: `${LONG.toLowerCase()}@example.com`,
  roles: { ...Object.fromEntries(Array.from({ length: 100 }, (_none, index) => [`role-${index}`, index % 9 === 0 ? { region: LONG } : true])), [LONG]: true },
  info: { phone: '+41 44 668 18 00', note: LONG, ...Object.fromEntries(HOSTILE.map((text, index) => [`text${index}`, text])) },
  attributes: { tenant: LONG },
  created_at: at,
  modified_at: at,
  expired_at: at,
  disabled_at: at
}

const ACTS: PersonAct[] = ['profile', 'roles', 'info', 'attributes', 'disable', 'unlock', 'recover', 'reset', 'end', 'disconnect', 'release', 'remove', 'invite']
const bare: PersonView = {
  user,
  tag: '"x"',
  answer: { user_id: ID, account: user.account, allowed: true, reasons: [], methods: [{ kind: 'password', id: 'password', works: true, created_at: at }], required_acr: '1', attempts: [] },
  sessions: { browsers: [], sessions: [], more: 0 },
  identities: [],
  mails: [],
  clients: [],
  mayPreview: true,
  events: [],
  acts: ACTS.filter((name) => name !== 'invite')
}

const events: Event[] = [
  { id: '01KAGZ3V5M7Q2W8E9R0T1Y2U3A', cursor: 'a.1', type: 'sign_in.failed', time: at, actor: { via: 'page' }, target: { kind: 'user', id: ID }, user_id: ID, outcome: 'failure', reason: 'wrong_password', address: '2001:db8:1:2:3:4:5:6', count: 17 },
  { id: '01KAGZ3V5M7Q2W8E9R0T1Y2U3B', cursor: 'a.2', type: 'user.roles_changed', time: at, actor: { via: 'console', user_id: ID }, target: { kind: 'user', id: LONG }, user_id: LONG, outcome: 'success', granted: ['editor', LONG] },
  { id: '01KAGZ3V5M7Q2W8E9R0T1Y2U3C', cursor: 'a.3', type: 'mail.failed', time: at, actor: { via: 'system' }, target: { kind: 'user', id: ID }, user_id: ID, client_id: `https://agent.example/${LONG}.json`, outcome: 'failure', mail: 'forgot', failure: LONG },
  ...HOSTILE.map((text, index): Event => ({ id: `01KAGZ3V5M7Q2W8E9R0T1Y2U4${index}`, cursor: `b.${index}`, type: 'client.registered', time: at, actor: { via: 'api', client_id: text }, target: { kind: 'client', id: text }, outcome: 'success' }))
]

const all: PersonView = {
  user: hostile,
  tag: '"x"',
  answer: {
    user_id: hostile.user_id,
    account: hostile.account,
    allowed: false,
    reasons: (Object.keys(REASONS) as Reason[]).map((reason, index) => ({
      reason, ...(index % 3 === 0 && { until: at }), ...(index % 4 === 0 && { detail: LONG }), ...(index % 2 === 0 && { remedy: { operation: index % 4 === 0 ? 'unlockUser' : 'configuration', who: ['admin'], allowed: index % 3 === 0 } })
    })),
    methods: [
      { kind: 'password', id: 'password', works: false, why: 'password_locked', created_at: at, last_used_at: at },
      { kind: 'passkey', id: 'a', name: LONG, works: true, created_at: at, last_used_at: at },
      { kind: 'totp', id: 'b', name: HOSTILE.join(' '), works: true, created_at: at },
      { kind: 'recovery', id: 'c', works: true },
      { kind: 'upstream', id: 'd', name: LONG, works: false, why: 'upstream_off' }
    ],
    required_acr: 'mfa',
    attempts: [
      { time: at, outcome: 'failure', reason: 'wrong_password', address: '2001:db8:1:2:3:4:5:6', client_id: LONG, count: 17 },
      { time: at, outcome: 'success', amr: ['pwd', 'otp'], acr: 'mfa', address: '203.0.113.7' }
    ]
  },
  sessions: {
    browsers: [
      { session_id: 'a', place: { browser: 'Firefox', system: 'Windows', address: '203.0.113.7' }, signed_in_at: at, last_used_at: at, console_used_at: at },
      { session_id: 'b', place: {}, signed_in_at: at, last_used_at: at },
      { session_id: 'c', place: { browser: LONG, system: LONG, address: LONG }, signed_in_at: at, last_used_at: at }
    ],
    sessions: [{ session_id: 'd', client: { client_id: LONG, name: HOSTILE.join(' ') }, created_at: at, last_used_at: at }, { session_id: 'e', client: { client_id: ID, name: 'Harbour Logistics' }, created_at: at, last_used_at: at }],
    more: 12
  },
  identities: [{ identity_id: 'a', upstream: 'corp', name: LONG, issuer: `https://${LONG}.example`, subject: LONG, created_at: at, last_used_at: at }, { identity_id: 'b', upstream: 'google', name: 'Google', issuer: 'https://accounts.google.com', subject: '110248495921238986420', created_at: at }],
  mails: [{ mail_id: 'a', kind: 'recovery', state: 'sent', time: at }, { mail_id: 'b', kind: 'forgot', state: 'failed', time: at, failure: LONG, attempts: 17 }, { mail_id: 'c', kind: 'invite', state: 'waiting', time: at, attempts: 2, due_at: at, ends_at: at }],
  clients: [{ clientId: ID, name: LONG }, { clientId: LONG, name: HOSTILE.join(' ') }] as NonNullable<PersonView['clients']>,
  mayPreview: true,
  events,
  acts: ACTS,
  link: `https://id.example/set-password#${LONG}`
}

const conflict = (action: string, typed: Record<string, string>, label: string, now: string): PersonView =>
  ({ ...all, link: undefined, refused: { action, typed, conflicts: [{ label, now, typed: typed[label] ?? '' }] } })

const people: PeopleView = { users: [user, hostile, { ...user, user_id: LONG, disabled_at: at, name: LONG }], count: { count: 10_000, isMore: true }, sought: 'mil', isWithin: false, after: 'x', before: 'y', isFirst: false, mayCreate: true, mayInvite: true }

const attention = ATTENTION_CODES.map((code, index) => ({ code, text: '', ...(index > 5 && { count: 1234 * index }), ...(index % 2 === 0 && { since: at }), ...(index % 3 === 0 && { more: '/jobs?kind=mail&state=failed' }) }))
const next = [
  { code: 'secret_key' as const, text: 'Set secretKey (IDENTITY_SECRET_KEY), so that secrets are encrypted where they are stored.' },
  { code: 'name' as const, text: `Set name (IDENTITY_NAME), such as ${LONG}.` }
]

const job = (kind: Job['kind'], about: string, more: Partial<Job> = {}): Job => ({ kind, job_id: '0f1e2d3c4b5a69788796a5b4c3d2e1f0', about, state: 'waiting', attempts: 3, due_at: at, ends_at: at, ...more })
const jobs = JOB_KINDS.flatMap((kind) => [job(kind, LONG), ...HOSTILE.map((text) => job(kind, text, { state: 'failed', failure: text })), job(kind, 'forgot', { failure: '550', state: 'failed', stalled_since: at, ends_at: '' })])

const noFilters: EventsView['filters'] = { type: '', user: '', client: '', reason: '', from: '', to: '' }

const settings = [
  { name: 'oidc.issuer', variable: 'IDENTITY_ISSUER', value: 'https://id.example', origin: 'environment' as const },
  { name: 'secretKey', variable: 'IDENTITY_SECRET_KEY', value: 'set', origin: 'file' as const },
  { name: 'upstreams', value: [{ id: LONG, only: HOSTILE }], origin: 'option' as const },
  { name: 'mail.from', variable: 'IDENTITY_MAIL_FROM', origin: 'default' as const },
  { name: LONG, variable: LONG.toUpperCase().replaceAll('-', '_'), value: LONG, origin: 'flag' as const }
]

/** Every page of the console but those of clients, bare and with texts that are long or hostile. */
export const CONSOLE_ROWS: readonly ConsoleRow[] = [
  ['console-overview', (context) => overviewPage({ ...view, section: 'overview' }, { status: { version: '0.1.0', engine: 'sqlite', ready: true, attention: [], next: [] } }, context)],
  ['console-overview-all', (context) => overviewPage({ ...longView, section: 'overview' }, { status: { version: '0.1.0', engine: 'mongodb', ready: false, reason: LONG, attention, next } }, context)],
  ['console-overview-support', (context) => overviewPage({ ...view, sections: ['overview', 'people'], section: 'overview' }, {}, context)],
  ['console-overview-nothing', (context) => overviewPage({ ...view, sections: ['overview'], section: 'overview', maySearch: false, calls: [], commands: [] }, {}, context)],
  ['console-people', (context) => peoplePage({ ...view, section: 'people' }, people, context)],
  ['console-people-none', (context) => peoplePage({ ...view, section: 'people' }, { ...people, users: [], count: { count: 0, isMore: false }, after: undefined, before: undefined, isFirst: true }, context)],
  ['console-people-refused', (context) => peoplePage(longView, { ...people, sought: LONG, isWithin: true, count: undefined, refused: { action: 'create', typed: { account: LONG, name: HOSTILE.join(' ') } } }, context)],
  ['console-people-link', (context) => peoplePage({ ...view, section: 'people' }, { ...people, users: [], link: `https://id.example/set-password#${LONG}` }, context)],
  ['console-person', (context) => personPage({ ...view, section: 'people', done: 'saved' }, bare, context)],
  ['console-person-locked', (context) => personPage({ ...view, section: 'people' }, {
    ...bare,
    answer: {
      ...bare.answer!,
      allowed: false,
      reasons: [{ reason: 'password_locked', method: 'password', remedy: { operation: 'unlockUser', who: ['admin'], allowed: true } }],
      methods: [{ kind: 'password', id: 'password', works: false, why: 'password_locked', created_at: at }]
    }
  }, context)],
  ['console-person-all', (context) => personPage(longView, all, context)],
  ['console-person-conflict', (context) => personPage({ ...view, section: 'people', error: ({ console: own }) => own.conflict }, conflict('roles', { roles: '{\n  "editor": true\n}' }, 'roles', JSON.stringify(hostile.roles, null, 2)), context)],
  ['console-person-remove', (context) => personPage(longView, { ...bare, refused: { action: 'remove', typed: {}, conflicts: [] } }, context)],
  ['console-find', (context) => findPage({ ...longView, error: undefined }, {
    hits: [
      { kind: 'user', id: ID, label: 'Ann Miller (ann@example.com)' }, { kind: 'client', id: LONG, label: LONG }, { kind: 'session', id: LONG, user_id: ID, label: HOSTILE.join(' ') },
      ...HOSTILE.map((label, index) => ({ kind: 'event' as const, id: `01KAGZ3V5M7Q2W8E9R0T1Y2U3${index}`, user_id: ID, label }))
    ]
  }, context)],
  ['console-find-none', (context) => findPage({ ...view, sought: 'nobody' }, { hits: [] }, context)],
  ['console-events', (context) => eventsPage({ ...view, section: 'events' }, { events, filters: { ...noFilters, type: 'user.*', from: '2026-11-01' }, after: 'x', isFirst: true }, context)],
  ['console-events-refused', (context) => eventsPage({ ...longView, section: 'events' }, { filters: { type: LONG, user: LONG, client: HOSTILE.join(' '), reason: 'wrong_password', from: at, to: 'tomorrow' }, isFirst: true }, context)],
  ['console-jobs', (context) => jobsPage({ ...longView, section: 'jobs' }, { jobs, limit: 5, kinds: JOB_KINDS, kind: '', state: '', mayRetry: true }, context)],
  ['console-jobs-none', (context) => jobsPage({ ...view, section: 'jobs', done: 'retried' }, { jobs: [], limit: 50, kinds: JOB_KINDS, kind: 'mail', state: 'failed', mayRetry: true }, context)],
  ['console-settings', (context) => settingsPage({ ...longView, section: 'settings' }, { settings, mayMail: true }, context)],
  ['console-zone', (context) => zonePage({ ...view, done: 'zone' }, ['UTC', 'Europe/Zurich', 'America/Argentina/ComodRivadavia'], context)]
]
