/**
 * Answers for operators: why somebody cannot sign in, and what a token would say. They come from the judges themselves, so that they cannot
 * disagree with them.
 * @module
 */
import type { FoundAccount, SignInAnswer } from '../../schemas/answers.ts'
import type { Event } from '../../schemas/event.ts'
import type { SignInHistory } from '../events/list.ts'
import type { Reason } from '../../schemas/reason.ts'
import type { HeldMails } from '../accounts/held-mails.ts'
import type { Base } from '../base.ts'
import { defined } from '../defined.ts'
import { type UserRecord, findMailbox } from '../records/user.ts'
import type { Actor } from '../roles.ts'
import { type ErrorCode, IdentityError } from '../errors.ts'
import { findByName } from '../users/addresses.ts'
import type { People } from '../users/people.ts'
import { createFind } from './find.ts'
import { type MethodParts, type Method, type Refusal, createMethods } from './methods.ts'
import { createNameAnswers } from './names.ts'
import { type SignInAnswerParts, type SignInQuestion, createSignInAnswers } from './sign-in.ts'
import { createTokenPreviews } from './token-preview.ts'

/** Attempts to sign in that an answer has. */
const ATTEMPTS = 20

/** Mails of each state that an answer has. */
const MAILS = 5

/** Refusals because of the person. Any other error says nothing about them. */
const REFUSALS: readonly ErrorCode[] = ['ErrPerm', 'ErrParam', 'ErrNotFound']

/** @throws what the operation throws where it refuses this actor because of the person */
type Gate = (user: UserRecord, actor: Actor) => Promise<void> | void

interface AnswerParts extends Base, MethodParts, Omit<SignInAnswerParts, 'listMethods'> {
  getIssuer: () => URL | undefined
  events: { listSignIns: (user_id: string, limit: number) => Promise<SignInHistory> }
  mails: Pick<HeldMails, 'listQueued'>
  people: Pick<People, 'requireReadable' | 'checkMayHelp'>
  /** What the operations that open something check of the person, by operation. */
  gates: Readonly<Record<string, Gate>>
  /** Whether this installation sends mail. */
  sendsMail: boolean
}

const showMethod = ({ id, kind, name, created_at, last_used_at, why }: Method): SignInAnswer['methods'][number] => (
  defined({ kind, id, name, created_at, last_used_at, works: why === undefined, why: why?.reason }))

function showAttempt ({ time, outcome, reason, amr, acr, client_id, address, count }: Event): SignInAnswer['attempts'][number] {
  return defined({ time, outcome, reason, amr, acr, client_id, address, count })
}

/** Answers questions about sign-ins and tokens. */
export function createAnswers (parts: AnswerParts) {
  const { store, events, mails, people, gates, sendsMail } = parts
  const users = store.collection<UserRecord>('users')
  const listMethods = createMethods(parts)
  const explain = createSignInAnswers({ ...parts, listMethods })
  const describeName = createNameAnswers(parts)

  /** The kinds of mails to a user that wait, or that the mail server did not take. */
  async function findMails (user_id: string): Promise<Refusal[]> {
    if (!sendsMail) return []
    const list = async (state: 'due' | 'failed', reason: Reason): Promise<Refusal[]> => {
      const kinds = new Set((await mails.listQueued(user_id, state, MAILS)).map(({ kind }) => kind))
      return [...kinds].map((detail) => ({ reason, detail }))
    }
    return (await Promise.all([list('due', 'mail_waiting'), list('failed', 'mail_failed')])).flat()
  }

  async function answer (user: UserRecord, asked: SignInQuestion): Promise<SignInAnswer> {
    const [outcome, ofMails, history] = await Promise.all([explain(user, asked), findMails(user.id), events.listSignIns(user.id, ATTEMPTS)])
    const { allowed, reasons, methods, required_acr } = outcome
    const { attempts, last_signed_in_at } = history
    const mailbox = findMailbox(user)
    const isUnproved = user.email_verified_at === undefined && mailbox !== undefined
    // It matters to who needs a link for a password, and to who comes with an identity at another provider.
    const needsLink = !allowed && !user.password && user.invited_at === undefined
    const matters = needsLink || attempts[0]?.reason === 'unproved_address'
    const unproved: Refusal[] = isUnproved && matters ? [{ reason: 'unproved_address', detail: mailbox }] : []
    return defined({
      user_id: user.id,
      account: user.account,
      allowed,
      reasons: [...reasons, ...unproved, ...ofMails],
      methods: methods.map(showMethod),
      required_acr,
      last_signed_in_at,
      attempts: attempts.map(showAttempt)
    })
  }

  const checkReadable: Gate = async ({ id }, actor) => { await people.requireReadable(id, actor) }

  async function passes (check: Gate, user: UserRecord, actor: Actor): Promise<boolean> {
    try {
      await check(user, actor)
      return true
    } catch (error) {
      if (error instanceof IdentityError && REFUSALS.includes(error.code)) return false
      throw error
    }
  }

  return {
    /**
     * Why a user cannot sign in, or that they can.
     * @throws ErrNotFound, ErrPerm
     */
    explainSignIn: async (user_id: string, asked: SignInQuestion, actor: Actor): Promise<SignInAnswer> => (
      await answer(await people.requireReadable(user_id, actor), asked)),

    /**
     * The same for what somebody types to sign in, also where no account has the name.
     * @throws ErrPerm
     */
    async findAccount (typed: string, asked: SignInQuestion, actor: Actor): Promise<FoundAccount> {
      const name = typed.trim().toLowerCase()
      const found = await findByName(users, name)
      if (found !== null) return await answer(await people.requireReadable(found.id, actor), asked)
      const { tried, similar: all, sign_up_until } = await describeName(name)
      const readable = await Promise.all(all.map(async ({ user }) => await passes(checkReadable, user, actor)))
      const similar = all.filter((_, index) => readable[index]).map(({ user: { id, account }, as }) => ({ user_id: id, account, as }))
      const unproved = similar.filter(({ as }) => as === 'unproved_address').map(({ account }): Refusal => ({ reason: 'unproved_address', detail: account }))
      return defined({
        account: name,
        allowed: false,
        // An invitation would go to a mistyped address.
        reasons: [defined({ reason: 'no_account' as const, opening: similar.length > 0 ? { self: 'typeAccount' } : undefined }), ...unproved],
        methods: [],
        required_acr: '1' as const,
        attempts: [],
        tried,
        similar,
        sign_up_until
      })
    },

    /** Whether an operation that opens something does not refuse this actor because of the person. */
    async mayApply (operation: string, user_id: string, actor: Actor): Promise<boolean> {
      const gate = gates[operation]
      if (gate === undefined) return true
      const user = await users.get(user_id)
      return user !== null && await passes(gate, user, actor)
    },

    previewToken: createTokenPreviews(parts),

    find: createFind(parts)
  }
}

export type Answers = ReturnType<typeof createAnswers>
