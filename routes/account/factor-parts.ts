import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { IdentityError } from '../../lib/errors.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import type { Proof } from '../../lib/proofs.ts'
import type { Enrolling, EnrolmentForm, FactorKind } from '../../lib/ways/enrolments.ts'
import { type WayRefusal, WayError } from '../../lib/ways/way-error.ts'
import type { AccountMount, Visit, Visits } from '../../plugins/account.ts'
import { PageError, describeLimit, sendPage } from '../../plugins/pages.ts'
import { LIMITS } from '../../schemas/common.ts'
import { type Done, describeProof, toDone } from './page.ts'

/** Characters of the name of a factor. */
export const NAME_LENGTH = 64

const REFUSALS: Partial<Record<WayRefusal, Message>> = {
  in_use: ({ errors }) => errors.wrongPasskey,
  last: ({ account }) => account.lastWay,
  most: ({ account }) => account.mostFactors,
  unknown: ({ account }) => account.enrolmentOver
}

/** Why a form was refused, in the reader's language. Undefined for an error that the reader has not caused. */
export function describeRefusal (error: IdentityError): Message | undefined {
  if (error.code === 'ErrLimit') return describeLimit(error)
  if (error instanceof WayError) return REFUSALS[error.refusal]
  return error.message.startsWith('kept:') ? ({ account }) => account.keepFirst : describeProof(error)
}

/** The actor of a change, with what the session has proved. */
export const toActor = ({ actor, session: { user_epoch: epoch, proofs } }: Visit) => ({ ...actor, epoch, proofs })

/** What a page says after a factor was added: the first one, or a further one. */
const ADDED: Record<FactorKind, [first: Done, more: Done]> = { totp: ['factor', 'factor-more'], passkey: ['passkey', 'passkey-more'] }

/** What the pages of all kinds of factors share. */
export function createFactorParts (app: FastifyInstance, { getHome, look }: AccountMount, visits: Visits) {
  const { enrolments } = app.identity
  const over = () => new PageError('ErrNotFound', 'id: no such factor', ({ account }) => account.enrolmentOver, [
    { to: `${getHome()}/methods`, text: ({ account }) => account.sections.methods }
  ])

  /** Signs this browser in again with what it has proved now, because a session has the proofs of its sign-in. */
  async function signInAgain (request: FastifyRequest, reply: FastifyReply, { server, session, user }: Visit, epoch: number, proofs: readonly Proof[]): Promise<void> {
    const former = session.proofs.filter(({ way }) => proofs.every((one) => one.way !== way))
    await visits.signIn(request, reply, server, { accountId: user.user_id, user_epoch: epoch, proofs: [...proofs, ...former] })
  }

  async function sendCodes (
    reply: FastifyReply, visit: Visit, { codes: id = '', way: factor }: Partial<Enrolling>, { codes }: { codes: string[] }
  ): Promise<FastifyReply> {
    return await sendPage(reply, 'account-factor-codes', { ...visit.view, codes, id, ...(factor !== undefined && { factor }) }, { look })
  }

  return {
    over,
    signInAgain,

    /** @throws ErrNotFound without an id */
    readId ({ query }: FastifyRequest): string {
      const { id } = query as { id?: unknown }
      if (typeof id !== 'string' || id === '' || id.length > LIMITS.id) throw over()
      return id
    },

    sendCodes,

    /** Shows the next page of an enrolment, or turns this browser's session into one with both proofs. */
    async goOn (
      request: FastifyRequest, reply: FastifyReply, visit: Visit, enrolling: Enrolling, form: EnrolmentForm
    ): Promise<FastifyReply> {
      const result = await enrolments.submit(toActor(visit), enrolling, form)
      if ('view' in result) return await sendCodes(reply, visit, result.enrolling, result.view)
      await signInAgain(request, reply, visit, result.added.epoch, [result.proof])
      const [first, more] = ADDED[result.proof.kind === 'passkey' ? 'passkey' : 'totp']
      return reply.redirect(toDone(getHome(), 'methods', result.withCodes ? first : more), 303)
    }
  }
}

export type FactorParts = ReturnType<typeof createFactorParts>
