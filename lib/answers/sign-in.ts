import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { findWithReason } from '../clients/usable.ts'
import { isDocumentUrl } from '../client-documents/ids.ts'
import { defined } from '../defined.ts'
import { type Acr, type Proof, findStronger } from '../proofs.ts'
import { type UserRecord, findInactive, hasFormerPassword } from '../records/user.ts'
import { type JudgeParts, type Judgement, createJudgement } from '../sign-in/may-sign-in.ts'
import type { SignIns } from '../sign-in/sign-ins.ts'
import { beginsSignIn, findDemanded, type WayPolicy } from '../ways/words.ts'
import type { Tickets } from '../tickets/tickets.ts'
import type { ListMethods, Method, MethodParts, Refusal } from './methods.ts'

/** What a sign-in is for. */
export interface SignInQuestion {
  client_id?: string | undefined
  acr?: Acr | undefined
}

/** How a sign-in of a person would end, with all that stands in the way of one. */
export interface SignInOutcome {
  allowed: boolean
  reasons: Refusal[]
  methods: Method[]
  required_acr: Acr
}

export interface SignInAnswerParts extends Pick<Base, 'store' | 'now'>, Pick<JudgeParts, 'isOver'> {
  listMethods: ListMethods
  listOpen: SignIns['listOpen']
  ways: MethodParts['ways']
  policy: WayPolicy
  tickets: Pick<Tickets, 'findUntil'>
}

/** Why a sign-in that ends with this judgement is refused. */
function toRefusal (judged: Exclude<Judgement, { may: true }>): Refusal | undefined {
  if (judged.because === 'ended') return { reason: judged.reason }
  if (judged.because === 'only') return { reason: 'only_upstream', detail: judged.upstream }
  if (judged.because === 'missing') return { reason: 'factor_missing' }
  return judged.because === 'unmet' ? { reason: 'acr_unmet' } : undefined
}

const isSame = (one: Refusal, other: Refusal): boolean => one.reason === other.reason && one.method === other.method

/**
 * Explains how a sign-in would end, with the judge that decides about real ones and the steps that they go through: as if the person proved
 * each method that works. It counts no attempt, touches no last use, writes nothing, and asks no provider.
 */
export function createSignInAnswers ({ store, now, isOver, listMethods, listOpen, ways, policy, tickets }: SignInAnswerParts) {
  const judge = createJudgement({ now, policy, isOver })

  /** The record that the judge of a real sign-in would read: it has the password of the former system once that was right. */
  async function readJudged (user: UserRecord): Promise<UserRecord> {
    const existing = await ways.withExisting(user)
    return hasFormerPassword(user) ? { ...existing, password: 'of the old system' } : existing
  }

  /**
   * Goes through a sign-in that begins with one method.
   * @returns the refusal, unless it is allowed; with `adds`, it goes on by adding a factor
   */
  async function walk (user: UserRecord, first: Method, others: readonly Method[], asked: SignInQuestion): Promise<{ refused?: Refusal, adds?: true }> {
    const at = toTimestamp(now())
    const toProof = ({ id, kind, uv }: Method): Proof => defined({ way: id, kind, uv, at })
    const proofs = [toProof(first)]
    for (;;) {
      const judged = await judge(user, { epoch: user.epoch, proofs, ...asked })
      if (judged.may) return {}
      const refused = toRefusal(judged)
      const open = await listOpen(judged, { user_id: user.id, user_epoch: user.epoch, account: user.account, proofs })
      if (judged.because === 'missing' && open.some(({ kind }) => asked.acr !== 'phr' || kind === 'passkey')) {
        return { refused: { reason: 'factor_missing', opening: { self: 'addFactor' } }, adds: true }
      }
      const next = others.find(({ id, kind }) => open.some((step) => step.kind === kind) && proofs.every(({ way }) => way !== id))
      if (next === undefined) return { refused: refused ?? { reason: open.length > 0 ? 'no_method' : 'acr_unmet' } }
      proofs.push(toProof(next))
    }
  }

  /** Goes through all sign-ins that the person could begin. */
  async function walkAll (user: UserRecord, methods: readonly Method[], asked: SignInQuestion): Promise<{ allowed: boolean, refused: Refusal[] }> {
    const working = methods.filter(({ why }) => why === undefined)
    const refused: Refusal[] = []
    for (const first of working.filter(beginsSignIn)) {
      const outcome = await walk(user, first, working, asked)
      if (outcome.refused === undefined) return { allowed: true, refused: [] }
      if (outcome.adds === true) return { allowed: true, refused: [outcome.refused] }
      refused.push(outcome.refused)
    }
    return { allowed: false, refused }
  }

  async function findClientRefusal (client_id: string | undefined): Promise<Refusal | undefined> {
    if (client_id === undefined) return undefined
    const { reason } = await findWithReason(store, client_id, toTimestamp(now()))
    // A document of an app that nobody has allowed yet is read at the sign-in.
    if (reason === undefined || (reason === 'unknown_client' && isDocumentUrl(client_id))) return undefined
    return { reason, detail: client_id }
  }

  /** Why somebody has no method with which a sign-in begins. */
  async function findBeginless (user: UserRecord): Promise<Refusal> {
    if (user.invited_at === undefined) return { reason: 'no_method' }
    return defined({ reason: 'invitation_open' as const, until: await tickets.findUntil('invite', user.id) })
  }

  return async function explain (user: UserRecord, asked: SignInQuestion): Promise<SignInOutcome> {
    const methods = await listMethods(user, asked.client_id)
    const inactive = findInactive(user, toTimestamp(now()))
    const client = await findClientRefusal(asked.client_id)
    const reasons: Refusal[] = inactive === undefined ? [] : [{ reason: inactive }]
    if (client !== undefined) reasons.push(client)
    reasons.push(...methods.flatMap(({ why }) => why ?? []))
    if (!methods.some(beginsSignIn)) reasons.push(await findBeginless(user))
    // The judge says of somebody who is not active only that.
    const judged = await readJudged(user)
    const { allowed, refused } = inactive === undefined ? await walkAll(judged, methods, asked) : { allowed: false, refused: [] }
    for (const one of refused) if (!reasons.some((other) => isSame(one, other))) reasons.push(one)
    const required_acr = findStronger(findDemanded(judged, policy), asked.acr)
    return { allowed: allowed && client === undefined, reasons, methods, required_acr }
  }
}
