/**
 * What support staff see and do of one user: sessions and mails, as the API has them.
 * @module
 */
import type { UserSessions } from '../schemas/support.ts'
import { paramError } from '../lib/errors.ts'
import { value } from './args.ts'
import { ACCOUNT, type Commands, OPERATOR } from './command.ts'
import { requireUser } from './input.ts'
import { printList, toBatches } from './output.ts'

/** A session of an app, or a browser. */
interface Shown extends Pick<UserSessions['browsers'][number], 'session_id' | 'last_used_at'> {
  app: string
  place?: UserSessions['browsers'][number]['place'] | undefined
  since: string
}

const toRows = ({ browsers, sessions }: UserSessions): Shown[] => [
  ...browsers.map(({ signed_in_at: since, ...browser }) => ({ ...browser, app: '(browser)', since })),
  ...sessions.map(({ session_id, last_used_at, place, client: { name }, created_at: since }) => ({ session_id, last_used_at, place, app: name, since }))
]

const SESSION_COLUMNS = {
  SESSION_ID: 'session_id',
  APP: 'app',
  SINCE: 'since',
  USED: 'last_used_at',
  ON: ({ place: { browser, system } = {} }: Shown) => [browser, system].filter(Boolean).join(', '),
  ADDRESS: ({ place }: Shown) => place?.address
} as const

/** The fewest characters by which a session is named. */
const LEAST = 8

/**
 * The id of the session that the flag names, also by its beginning, which a narrow table shows.
 * @throws ErrParam when no session, or several, begin so
 */
function findSession (given: string, { browsers, sessions, more }: UserSessions): string {
  const name = given.replace(/…$/, '')
  const ids = [...browsers, ...sessions].map(({ session_id }) => session_id)
  const found = ids.filter((id) => id === given || (name.length >= LEAST && id.startsWith(name)))
  if (found.length > 1) throw paramError('session', 'is the beginning of several ids')
  // The list may not be complete. The service judges an id that is not in it.
  if (found[0] === undefined && more === 0) throw paramError('session', 'the user has no such session')
  return found[0] ?? given
}

export const userHelpCommands: Commands = {
  'user sessions': {
    summary: 'List where a user is signed in. The browsers, and the sessions of apps.',
    example: 'user sessions ann@example.com',
    flags: { account: ACCOUNT },
    creates: false,
    async run (context) {
      const { user_id } = await requireUser(context)
      const found = await context.services.userSessions.list(user_id, OPERATOR)
      if (context.json) return found
      await printList(context, toBatches(toRows(found)), SESSION_COLUMNS, { keep: ['SESSION_ID'], leave: ['ON', 'SINCE', 'ADDRESS'] })
      if (found.more > 0) context.stdout.write(`\n${found.more} more are not shown.\n`)
    }
  },

  'user sessions end': {
    summary: "End a user's sessions and tokens, or one session.",
    example: 'user sessions end ann@example.com',
    flags: {
      account: ACCOUNT,
      session: value('ID', 'Only this one, by its id or the beginning that a table shows. That of a browser ends the sessions of its apps too.')
    },
    async run (context) {
      const { services: { userSessions, tokens }, args } = context
      const { user_id, account } = await requireUser(context)
      const given = args.optional('session')
      const session_id = given === undefined ? undefined : findSession(given, await userSessions.list(user_id, OPERATOR))
      if (session_id === undefined) await userSessions.endAll(user_id, OPERATOR)
      else await userSessions.endOne(user_id, session_id, OPERATOR)
      await tokens.settle()
      return { user_id, account, ended: session_id ?? 'all' }
    }
  },

  'user mails': {
    summary: 'List the emails to a user. Sent, waiting and failed ones, without texts, links and addresses.',
    example: 'user mails ann@example.com',
    flags: { account: ACCOUNT },
    creates: false,
    async run (context) {
      const { services: { heldMails, events } } = context
      await events.flush()
      const { user_id } = await requireUser(context)
      await printList(context, toBatches(await heldMails.listOf(user_id, OPERATOR)), {
        TIME: 'time', KIND: 'kind', STATE: 'state', ATTEMPTS: 'attempts', FAILURE: 'failure', DUE: 'due_at', MAIL_ID: 'mail_id'
      }, { short: ['MAIL_ID'], keep: ['KIND', 'STATE'], leave: ['ATTEMPTS', 'MAIL_ID', 'DUE'] })
    }
  }
}
