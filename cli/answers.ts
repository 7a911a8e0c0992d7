/**
 * Answers for operators: why somebody cannot sign in, and what a token would say.
 * @module
 */
import { REASONS, type Reason } from '../schemas/reason.ts'
import type { FoundAccount, TokenPreview } from '../schemas/answers.ts'
import type { Refusal } from '../lib/answers/methods.ts'
import { type Opening, REMEDIES } from '../lib/answers/remedies.ts'
import { defined } from '../lib/defined.ts'
import { ACRS, type Acr } from '../lib/proofs.ts'
import { choice, subject, value } from './args.ts'
import { CLIENT, type Commands, type Context, OPERATOR } from './command.ts'
import { readClientId, requireUser } from './input.ts'
import { printList, printResult, toBatches, toCell } from './output.ts'
import { CALL } from './welcome.ts'

/** What stands in the way, and the person whom it concerns. */
interface Told extends Refusal {
  account: string
  /** An account that may be meant, where none has the name. */
  meant?: string
}

/** What the person or the app does, by the code of a remedy that is theirs. */
export const OWN = {
  enterNewestCode: 'They enter the newest code.',
  setClock: 'They set the time of their device to automatic.',
  addFactor: 'They add a factor as they sign in.',
  signIn: 'They sign in again.',
  typeAccount: 'They enter their email or username.',
  signInWithProvider: 'They sign in with their provider.',
  consent: 'They allow the app as they sign in.',
  requestScope: 'The app requests it.',
  requestWithoutResource: 'The app requests a token without the resource.'
} satisfies Record<string, string>

/** How long a limit of attempts within a minute refuses further ones, in milliseconds. */
const LIMIT = 60_000

const isCode = (text: string | undefined): text is Reason => text !== undefined && Object.hasOwn(REASONS, text)

/** The command that opens what a reason refuses, or what else does. */
function describeRemedy ({ reason, account, detail = '', meant, opening }: Told): string {
  // An invitation would go to a mistyped address.
  if (reason === 'no_account' && meant !== undefined) return `${CALL} user why ${meant}`
  // The limits of a minute are counted by the running service, which no command reaches.
  if (reason === 'limited') return 'Wait. Only the service that runs unlocks it: POST /user/{userId}/unlock.'
  const remedy: Opening | undefined = opening ?? REMEDIES[reason]
  if (remedy === undefined) return 'Wait.'
  if ('operator' in remedy) return `The configuration: ${CALL} config check`
  if ('self' in remedy) return OWN[remedy.self as keyof typeof OWN]
  return remedy.command === undefined ? remedy.operation : `${CALL} ${remedy.command.replace('{account}', account).replace('{detail}', detail)}`
}

/** Prints each reason with its meaning and what to do. */
function printReasons (context: Context, reasons: readonly Told[]): void {
  for (const one of reasons) {
    const { reason, detail, method, until } = one
    context.stdout.write('\n')
    printResult(context, defined({ reason, meaning: REASONS[reason], about: detail ?? method, until, 'what to do': describeRemedy(one) }))
  }
}

/**
 * Why the last attempt failed, unless that is among the reasons. A wrong password never is, because nothing refuses the next attempt. Nor is a
 * limit of the running service: only an event shows it to a command, and it ends a minute later.
 */
function findLast ({ account, reasons, attempts: [last] }: FoundAccount, now: number): Told | undefined {
  if (last === undefined || last.outcome === 'success' || !isCode(last.reason) || reasons.some(({ reason }) => reason === last.reason)) return
  const { reason, time } = last
  if (reason !== 'limited') return { reason, account }
  const until = Date.parse(time) + LIMIT
  return until < now ? undefined : { reason, account, until: new Date(until).toISOString() }
}

/** What a person reads: the reasons, then why the last attempt failed. */
function listTold (found: FoundAccount): { reasons: Told[], last: Told | undefined } {
  const { account, user_id, reasons, similar: [meant] = [] } = found
  const toTold = (one: Refusal): Told => ({
    ...one,
    // Of a name that no account has, the address is that of the account that is meant.
    account: user_id === undefined && one.reason === 'unproved_address' ? one.detail ?? account : account,
    ...(meant !== undefined && { meant: meant.account })
  })
  return { reasons: reasons.map(toTold), last: findLast(found, Date.now()) }
}

async function printAnswer (context: Context, found: FoundAccount): Promise<void> {
  const { account, user_id, allowed, required_acr, last_signed_in_at, methods, attempts, tried, similar = [], sign_up_until } = found
  printResult(context, defined({
    account,
    user_id,
    allowed: allowed ? 'yes' : 'no',
    required_acr,
    last_signed_in_at,
    tried: tried && `${tried.failures} failed attempt${tried.failures === 1 ? '' : 's'}, the last at ${tried.last_at}`,
    similar: similar.length === 0 ? undefined : similar.map((one) => `${one.account} (${one.as})`),
    sign_up_until
  }))
  const { reasons, last } = listTold(found)
  printReasons(context, reasons)
  if (last !== undefined) {
    context.stdout.write('\nThe last attempt failed:\n')
    printReasons(context, [last])
  }
  if (methods.length > 0) {
    context.stdout.write('\n')
    await printList(context, toBatches(methods), {
      METHOD: 'kind', NAME: 'name', WORKS: ({ works }) => works ? 'yes' : 'no', WHY: 'why', 'LAST USED': 'last_used_at', ID: 'id'
    }, { short: ['ID'], keep: ['METHOD', 'WHY'] })
  }
  if (attempts.length > 0) {
    context.stdout.write('\n')
    await printList(context, toBatches(attempts), {
      TIME: 'time', OUTCOME: 'outcome', REASON: 'reason', AMR: ({ amr = [] }) => amr.join(','), CLIENT: 'client_id', ADDRESS: 'address', COUNT: 'count'
    }, { short: ['CLIENT'], keep: ['REASON'], leave: ['OUTCOME'] })
  }
}

/** Prints the claims of one part, a line for each. */
function printClaims (context: Context, title: string, claims: object): void {
  context.stdout.write(`\n${context.look.paint('bold', title)}\n`)
  printResult(context, Object.fromEntries(Object.entries(claims).map(([claim, one]) => [`  ${claim}`, typeof one === 'string' ? one : JSON.stringify(one)])))
}

async function printPreview (context: Context, account: string, { allowed, reasons, absent, ...parts }: TokenPreview): Promise<void> {
  printResult(context, { allowed: allowed ? 'yes' : 'no' })
  printReasons(context, reasons.map((one) => ({ ...one, account })))
  for (const [title, claims] of Object.entries(parts)) printClaims(context, title, claims)
  context.stdout.write('\n')
  await printList(context, toBatches(absent), { ABSENT: 'claim', IN: 'in', REASON: 'reason' })
  const codes = [...new Set(absent.map(({ reason }) => reason))]
  if (codes.length === 0) return
  context.stdout.write('\n')
  printResult(context, Object.fromEntries(codes.map((code) => [toCell(code), REASONS[code]])))
}

export const answerCommands: Commands = {
  find: {
    summary: 'Find users, clients, sessions and events by an id, an account or an address, and otherwise by the beginnings of words.',
    example: 'find kowal',
    flags: { text: subject('TEXT', 'Whatever names them.') },
    creates: false,
    async run (context) {
      const { services: { answers, events }, args, json } = context
      await events.flush()
      const hits = await answers.find(args.required('text'), OPERATOR, { clients: true, sessions: true, events: true })
      if (json) return { hits }
      await printList(context, toBatches(hits), { KIND: 'kind', LABEL: 'label', ID: 'id', USER: 'user_id' }, { keep: ['KIND', 'ID'] })
    }
  },

  'user why': {
    summary: 'Explain why somebody cannot sign in. Also for a name that no account has. Changes nothing.',
    example: 'user why ann@example.com',
    flags: {
      account: subject('ACCOUNT', 'Their email or username.'),
      client: value('ID', 'The app that they sign in to. By default the pages of the account.'),
      acr: choice('CLASS', ACRS, 'The strength that the app asks for: 1, mfa or phr.')
    },
    creates: false,
    async run (context) {
      const { services: { answers, events }, args, json } = context
      await events.flush()
      const client_id = args.optional('client') === undefined ? undefined : await readClientId(context)
      const found = await answers.findAccount(args.required('account'), { client_id, acr: args.optional('acr') as Acr | undefined }, OPERATOR)
      if (json) return { ...found, reasons: found.reasons.map(({ opening, ...one }: Refusal) => one) }
      await printAnswer(context, found)
    }
  },

  'token preview': {
    summary: 'Show the claims that an app would get. Issues no token. An event records it.',
    example: 'token preview ID --user ann@example.com --scope "openid email"',
    flags: {
      client: CLIENT,
      user: value('ACCOUNT', 'The account of the user. By default the app acts for itself.'),
      scope: value('SCOPES', 'The scopes of the request. By default those of a request without any.'),
      resource: value('URI', 'The resource that the token is for.')
    },
    async run (context) {
      const { services: { answers }, args, json } = context
      const user = args.optional('user') === undefined ? undefined : await requireUser(context, 'user')
      const asked = { client_id: await readClientId(context), user_id: user?.user_id, scope: args.optional('scope'), resource: args.optional('resource') }
      const preview = await answers.previewToken(asked)
      if (json) return preview
      await printPreview(context, user?.account ?? 'ACCOUNT', preview)
    }
  }
}
