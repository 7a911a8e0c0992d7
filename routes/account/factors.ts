import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type IdentityError, paramError } from '../../lib/errors.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import type { Proof } from '../../lib/proofs.ts'
import { toQrCode } from '../../lib/qr.ts'
import type { UserRecord } from '../../lib/records.ts'
import { countCodes } from '../../lib/ways/factors.ts'
import { type HeldWay, type WayRefusal, WayError } from '../../lib/ways/ways.ts'
import type { AccountMount, Visit, Visits } from '../../plugins/account.ts'
import { createPageProof } from '../../plugins/page-proof.ts'
import { PageError, describeLimit, sendPage } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { LIMITS } from '../../schemas/common.ts'
import { createPages, describeProof } from './page.ts'

const NAME_LENGTH = 64

const REFUSALS: Partial<Record<WayRefusal, Message>> = {
  last: ({ account }) => account.lastWay,
  most: ({ account }) => account.mostFactors,
  unknown: ({ account }) => account.enrolmentOver
}

/** Why a form was refused, in the reader's language. Undefined for an error that the reader has not caused. */
function describeRefusal (error: IdentityError): Message | undefined {
  if (error.code === 'ErrLimit') return describeLimit(error)
  if (error instanceof WayError) return REFUSALS[error.refusal]
  return error.message.startsWith('kept:') ? ({ account }) => account.keepFirst : describeProof(error)
}

/** The actor of a change, with what the session has proved. */
const toActor = ({ actor, session: { user_epoch: epoch, proofs } }: Visit) => ({ ...actor, epoch, proofs })

/** Second factors: authenticator apps and recovery codes. */
export function factorPages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { getHome, look, limits, limitWrites } = mount
  const { accounts, factors, store, ways } = app.identity
  const proof = createPageProof(app, mount)
  const add = createPages(app, mount, visits)
  const list = (done: string) => `${getHome()}/factors?${new URLSearchParams({ done }).toString()}`

  const over = () => new PageError('ErrNotFound', 'id: no such factor', ({ account }) => account.enrolmentOver, [
    { to: `${getHome()}/factors`, text: ({ account }) => account.sections.factors }
  ])

  /** @throws ErrNotFound without an id */
  function readId ({ query }: FastifyRequest): string {
    const { id } = query as { id?: unknown }
    if (typeof id !== 'string' || id === '' || id.length > LIMITS.id) throw over()
    return id
  }

  /** The factors of the person, and their set of recovery codes. */
  async function listOwn ({ user: { user_id } }: Visit): Promise<{ apps: HeldWay[], codes?: HeldWay }> {
    const record = await store.collection<UserRecord>('users').get(user_id)
    const held = record === null ? [] : await ways.list(record)
    const codes = held.find(({ way }) => way.kind === 'recovery')
    return { apps: held.filter(({ way }) => way.kind === 'totp'), ...(codes && { codes }) }
  }

  /** Signs this browser in again with what it has proved now, because a session has the proofs of its sign-in. */
  async function signInAgain (request: FastifyRequest, reply: FastifyReply, { server, session, user }: Visit, epoch: number, proofs: readonly Proof[]): Promise<void> {
    const former = session.proofs.filter(({ way }) => proofs.every((one) => one.way !== way))
    await visits.signIn(request, reply, server, { accountId: user.user_id, user_epoch: epoch, proofs: [...proofs, ...former] })
  }

  /** Names a factor that was proved, and turns this browser's session into one with both proofs. */
  async function nameFactor (request: FastifyRequest, reply: FastifyReply, visit: Visit, ids: [factor: string, codes?: string]): Promise<FastifyReply> {
    const [id, codes] = ids
    const begun = await factors.findBegun(toActor(visit), id, visit.user.account)
    if (begun?.proved !== true) throw new WayError('unknown')
    const written = await accounts.addFactor(toActor(visit), codes === undefined ? [id] : [id, codes])
    const held = await ways.get(written, id)
    const proofs: Proof[] = held === null ? [] : [{ way: id, kind: 'totp', at: held.credential.last_used_at ?? held.way.at }]
    await signInAgain(request, reply, visit, written.epoch, proofs)
    return reply.redirect(list(codes === undefined ? 'factor-more' : 'factor'), 303)
  }

  async function showCodes (reply: FastifyReply, visit: Visit, factor?: string): Promise<FastifyReply> {
    const { id, codes } = await factors.prepareCodes(toActor(visit))
    return await sendPage(reply, 'account-factor-codes', { ...visit.view, codes, id, ...(factor !== undefined && { factor }) }, { look })
  }

  add('/factors', 'account-factors', {
    section: 'factors',
    sensitive: true,
    async show (visit) {
      const { apps, codes } = await listOwn(visit)
      return {
        apps: apps.map(({ id, way: { at }, credential: { name, last_used_at } }) =>
          ({ id, at, ...(name !== undefined && { name }), ...(last_used_at !== undefined && { last_used_at }) })),
        ...(codes !== undefined && { codes: countCodes([codes]) }),
        mayAdd: ways.canAddFactors
      }
    },
    async submit (visit, request, reply) {
      await proof.require(request, visit)
      const { id } = await factors.beginTotp(toActor(visit), visit.user.account, readField(request, 'name').trim().slice(0, NAME_LENGTH))
      return reply.redirect(`${getHome()}/factors/add?${new URLSearchParams({ id }).toString()}`, 303)
    },
    describeRefusal
  })

  add('/factors/add', 'account-factor-add', {
    section: 'factors',
    path: 'factors',
    sensitive: true,
    async show (visit, request) {
      const begun = await factors.findBegun(toActor(visit), readId(request), visit.user.account)
      if (begun === null) throw over()
      return { ...begun, qr: await toQrCode(begun.uri) }
    },
    async submit (visit, request, reply) {
      const id = readId(request)
      await limits.guess(request, visit.user.account)
      await limitWrites(visit.user.user_id)
      const begun = await factors.findBegun(toActor(visit), id, visit.user.account)
      if (begun === null) throw over()
      const code = readField(request, 'code').replaceAll(' ', '').slice(0, NAME_LENGTH)
      if (!begun.proved && !await factors.proveTotp(toActor(visit), id, code)) throw paramError('code', 'is wrong')
      if ((await listOwn(visit)).codes === undefined) return await showCodes(reply, visit, id)
      return await nameFactor(request, reply, visit, [id])
    },
    describeRefusal
  })

  add('/factors/codes', 'account-factor-codes', {
    section: 'factors',
    path: 'factors/codes',
    sensitive: true,
    show: () => ({}),
    async submit (visit, request, reply) {
      const [codes, factor] = [readField(request, 'codes'), readField(request, 'factor')].map((id) => id.slice(0, LIMITS.id)) as [string, string]
      if (codes === '') {
        await proof.require(request, visit)
        if ((await listOwn(visit)).apps.length === 0) throw over()
        return await showCodes(reply, visit)
      }
      await limitWrites(visit.user.user_id)
      if (readField(request, 'kept') === '') throw paramError('kept', 'must be confirmed')
      const prepared = await ways.findPrepared(visit.actor, codes)
      if (prepared?.way.kind !== 'recovery') throw new WayError('unknown')
      if (factor !== '') return await nameFactor(request, reply, visit, [factor, codes])
      await accounts.renewCodes(toActor(visit), codes)
      return reply.redirect(list('codes'), 303)
    },
    describeRefusal
  })

  add('/factors/remove', 'account-factor-remove', {
    section: 'factors',
    path: 'factors',
    sensitive: true,
    async show (visit, request) {
      const { apps } = await listOwn(visit)
      const held = apps.find(({ id }) => id === readId(request))
      if (held === undefined) throw over()
      const { id, credential: { name } } = held
      return { id, isLast: apps.length === 1, ...(name !== undefined && { name }) }
    },
    async submit (visit, request, reply) {
      const id = readId(request)
      const proofs = await proof.require(request, visit)
      const { epoch } = await accounts.removeFactor(toActor(visit), id, { isEnd: readField(request, 'end_sessions') !== '' })
      await signInAgain(request, reply, visit, epoch, proofs)
      return reply.redirect(list('factor-removed'), 303)
    },
    describeRefusal
  })
}
