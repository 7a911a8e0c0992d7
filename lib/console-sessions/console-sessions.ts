import { randomBytes } from 'node:crypto'
import type { Base } from '../base.ts'
import { createBrowsers } from '../browsers/browsers.ts'
import { type SignInSessionRecord, listProofs } from '../browsers/record.ts'
import { toTimestamp } from '../clock.ts'
import { API_SCOPES } from '../api-scopes.ts'
import { hashToken } from '../crypto/random-token.ts'
import { deepFreeze } from '../freeze.ts'
import type { Acr, Strength } from '../proofs.ts'
import type { UserRecord } from '../records/user.ts'
import { holdsRole } from '../roles.ts'
import type { MaySignIn } from '../sign-in/may-sign-in.ts'
import { type Caller, POWER } from '../tokens/caller.ts'
import { type Tokens, invalidToken } from '../tokens/tokens.ts'

/** Milliseconds without a request after which the console asks for a sign-in. */
const IDLE = 15 * 60_000

/** Milliseconds after which it does so, however often it is used. */
const LIFE = 8 * 60 * 60_000

/** Milliseconds between two cookies of one browser, and between two notes of its last use. */
const RENEWAL = 60_000

/** What a cookie is sealed for: nothing else opens it. */
const CONTEXT = 'console session'

/** The id and the name of the client that events and answers show for the console. No client of the store has it. */
const CONSOLE = { clientId: 'console', name: 'Console' }

/** What a cookie says. Times are milliseconds since 1970. */
interface Sealed {
  /** The uid of the browser's sign-in session, with which it lives and ends. */
  uid: string
  user_id: string
  /** The time of the sign-in that it was entered with: a later one ends it, as it ends the cookies of before. ISO 8601. */
  signed_in_at: string
  /** When the console was entered, and when it was used last. */
  since: number
  used: number
  /** A secret of this browser, for its forms. */
  secret: string
}

/** A browser in which somebody has entered the console. */
export interface ConsoleSession {
  uid: string
  user: UserRecord
  /** The time of the last sign-in: of the oldest proof that its strength rests on. */
  signed_in_at: string
  strength: Strength
  /** A secret of this browser, for its forms. */
  xsrf: string
  /** The cookie. It also stands for an access token in the calls that pages make of the API within this process. */
  cookie: string
  /** Whether the browser is to get this cookie, since the one that it has sent is old. */
  isRenewed: boolean
}

interface ConsoleParts extends Pick<Base, 'store' | 'now' | 'box' | 'roles'> {
  recorder: Pick<Base['recorder'], 'insert'>
  tokens: Pick<Tokens, 'find'>
  maySignIn: MaySignIn
  /** Whether a sign-in came only of upstreams that are for some apps. The console is none of these. */
  isRestricted: (strength: Strength) => boolean
}

/** The caller of the API whom a session stands for: a user with all scopes, so with what their roles allow. */
function toCaller ({ uid, user, strength }: Pick<ConsoleSession, 'uid' | 'user' | 'strength'>, adminRole: string): Caller {
  return deepFreeze({
    subject: 'user',
    user: { user_id: user.id, account: user.account, name: user.name, roles: user.roles },
    client: CONSOLE,
    token: { id: hashToken(`console ${uid}`), scopes: Object.keys(API_SCOPES), user_epoch: user.epoch },
    auth: strength,
    isAdmin: holdsRole(user.roles, adminRole),
    [POWER]: { roles: user.roles, scopes: Object.keys(API_SCOPES), accepted: true }
  })
}

/**
 * Sessions of the console. One is a part of the browser's sign-in session, and nothing else is stored for it: the cookie names the sign-in
 * session, which is read at each request. So whatever ends the sign-in session, changes the epoch of its user or takes their role ends this too.
 */
export function createConsole ({ store, now, box, roles, recorder, tokens, maySignIn, isRestricted }: ConsoleParts) {
  const browsers = createBrowsers(store)

  /** The valid sign-in session with this uid. Two tabs that signed in at once have two records: the later sign-in counts. */
  async function findSignIn (uid: string, user_id: string): Promise<SignInSessionRecord | undefined> {
    let found: SignInSessionRecord | undefined
    for await (const batch of browsers.readAt(uid)) {
      for (const { id } of batch) {
        const record = (await tokens.find<SignInSessionRecord>('sign_in_sessions', id))?.record
        if (record?.user_id === user_id && (found === undefined || (record.signed_in_at ?? '') > (found.signed_in_at ?? ''))) found = record
      }
    }
    return found
  }

  function open (cookie: string): Sealed | null {
    try {
      return JSON.parse(box.open(cookie, CONTEXT)) as Sealed
    } catch {
      return null
    }
  }

  const seal = (sealed: Sealed): string => box.seal(JSON.stringify(sealed), CONTEXT)

  async function find (cookie: string, acr?: Acr): Promise<ConsoleSession | null> {
    const sealed = open(cookie)
    const time = now()
    if (sealed === null || sealed.used + IDLE <= time || sealed.since + LIFE <= time) return null
    const { uid, user_id } = sealed
    const signIn = await findSignIn(uid, user_id)
    if (signIn === undefined) return null
    const { signed_in_at = signIn.created_at } = signIn
    if (signed_in_at !== sealed.signed_in_at) return null
    const judged = await maySignIn({ user_id, epoch: signIn.user_epoch ?? 0, proofs: listProofs(signIn), acr })
    if (!judged.may || isRestricted(judged.strength)) return null
    const isRenewed = sealed.used + RENEWAL <= time
    if (signIn.console_at === undefined || Date.parse(signIn.console_at) + RENEWAL <= time) await browsers.noteConsole(uid, toTimestamp(time))
    const { user, strength } = judged
    const xsrf = hashToken(`console xsrf ${sealed.secret}`)
    return { uid, user, signed_in_at, strength, xsrf, cookie: isRenewed ? seal({ ...sealed, used: time }) : cookie, isRenewed }
  }

  return {
    /** Enters the console with a browser's sign-in session, which the caller has judged. @returns the cookie */
    async enter ({ uid, user_id, signed_in_at }: { uid: string, user_id: string, signed_in_at: string }): Promise<string> {
      const time = now()
      await recorder.insert({ type: 'console.entered', id: user_id })
      await browsers.noteConsole(uid, toTimestamp(time))
      return seal({ uid, user_id, signed_in_at, since: time, used: time, secret: randomBytes(32).toString('base64url') })
    },

    /**
     * The session of a cookie, as it is now. Null when it has ended, or its user has to prove more.
     * @param acr the strength that is demanded
     */
    find,

    /**
     * The caller of the API whom a cookie stands for, for calls within this process.
     * @throws ErrUnknown
     */
    async authenticate (cookie: string, acr?: Acr): Promise<Caller> {
      const session = await find(cookie, acr)
      if (session === null) throw invalidToken()
      return toCaller(session, roles.admin)
    }
  }
}

export type Console = ReturnType<typeof createConsole>
