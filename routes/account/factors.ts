import type { FastifyInstance, FastifyRequest } from 'fastify'
import { paramError } from '../../lib/errors.ts'
import type { FactorKind, PasskeyFactorView } from '../../lib/pages/contract.ts'
import { toQrCode } from '../../lib/qr.ts'
import { WayError } from '../../lib/ways/way-error.ts'
import type { AccountMount, Visit, Visits } from '../../plugins/account.ts'
import { createPageProof } from '../../plugins/page-proof.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { LIMITS } from '../../schemas/common.ts'
import { NAME_LENGTH, createFactorParts, describeRefusal, toActor } from './factor-parts.ts'
import { createPages } from './page.ts'

const readName = (request: FastifyRequest): string => readField(request, 'name').trim().slice(0, NAME_LENGTH)

/** Second factors: authenticator apps, recovery codes, and what concerns every kind. */
export function factorPages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { getHome, limits, limitWrites } = mount
  const { enrolments, factors, ownFactors, ways } = app.identity
  const proof = createPageProof(app, mount)
  const add = createPages(app, mount, visits)
  const { goOn, over, readId, sendCodes, signInAgain } = createFactorParts(app, mount, visits)

  add('/factors', 'account-app-add', {
    section: 'methods',
    path: 'factors/new',
    shownAt: '/factors/new',
    sensitive: true,
    asksProof: true,
    show: (_visit, request) => ({ name: readName(request) }),
    async submit (visit, request, reply) {
      await proof.require(request, visit)
      const { way: id } = await enrolments.begin(toActor(visit), 'totp', readName(request))
      return reply.redirect(`${getHome()}/factors/add?${new URLSearchParams({ id }).toString()}`, 303)
    },
    describeRefusal
  })

  add('/factors/add', 'account-factor-add', {
    section: 'methods',
    path: 'methods',
    sensitive: true,
    async show (visit, request) {
      const view = await enrolments.find(toActor(visit), { way: readId(request) })
      if (view === null) throw over()
      return { ...view, qr: await toQrCode(view.uri) }
    },
    async submit (visit, request, reply) {
      const id = readId(request)
      await limits.guess(request, visit.user.account)
      await limitWrites(visit.user.user_id)
      if (await enrolments.find(toActor(visit), { way: id }) === null) throw over()
      const code = readField(request, 'code').replaceAll(' ', '').slice(0, NAME_LENGTH)
      return await goOn(request, reply, visit, { kind: 'totp', way: id }, { code })
    },
    describeRefusal
  })

  add('/factors/codes', 'account-factor-codes', {
    section: 'methods',
    path: 'factors/codes',
    sensitive: true,
    asksProof: true,
    show: () => ({}),
    async submit (visit, request, reply) {
      const [codes, factor] = [readField(request, 'codes'), readField(request, 'factor')].map((id) => id.slice(0, LIMITS.id)) as [string, string]
      if (codes === '') {
        await proof.require(request, visit)
        const { apps, passkeys: own } = await ownFactors.list(visit.user.user_id)
        if (apps.length + own.length === 0) throw over()
        const made = await factors.prepareCodes(toActor(visit))
        return await sendCodes(reply, visit, { codes: made.id }, made)
      }
      await limitWrites(visit.user.user_id)
      if (readField(request, 'kept') === '') throw paramError('kept', 'must be confirmed')
      if (factor !== '') return await goOn(request, reply, visit, { kind: 'totp', way: factor, codes }, { kept: true })
      if ((await ways.findPrepared(visit.actor, codes))?.way.kind !== 'recovery') throw new WayError('unknown')
      await factors.renewCodes(toActor(visit), codes)
      return 'codes'
    },
    describeRefusal
  })

  /** @throws ErrNotFound for an id that is none of theirs */
  async function findOwn (visit: Visit, request: FastifyRequest): Promise<PasskeyFactorView & { kind: FactorKind, isLast: boolean }> {
    const { apps, passkeys: own } = await ownFactors.list(visit.user.user_id)
    const id = readId(request)
    const found = [...apps, ...own].find((one) => one.id === id)
    if (found === undefined) throw over()
    return { ...found, kind: apps.includes(found) ? 'totp' : 'passkey', isLast: apps.length + own.length === 1 }
  }

  add('/factors/remove', 'account-factor-remove', {
    section: 'methods',
    path: 'methods',
    sensitive: true,
    asksProof: true,
    show: findOwn,
    async submit (visit, request, reply) {
      const id = readId(request)
      const { proofs, confirm } = await proof.require(request, visit)
      const { isLast } = await findOwn(visit, request)
      const { kind, epoch } = await factors.removeFactor({ ...toActor(visit), confirm }, id, { isEnd: readField(request, 'end_sessions') !== '' })
      await signInAgain(request, reply, visit, epoch, proofs)
      // The page of the list tells the browser which passkeys are left.
      if (kind === 'passkey') return 'passkey-removed'
      return isLast ? 'factors-off' : 'factor-removed'
    },
    describeRefusal
  })

  add('/factors/rename', 'account-factor', {
    section: 'methods',
    path: 'methods',
    sensitive: true,
    show: findOwn,
    async submit (visit, request) {
      await limitWrites(visit.user.user_id)
      const { id } = await findOwn(visit, request)
      await ownFactors.rename(visit.user.user_id, id, readName(request))
      return 'renamed'
    },
    describeRefusal
  })
}
