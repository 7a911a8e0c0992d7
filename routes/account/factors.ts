import type { FastifyInstance, FastifyRequest } from 'fastify'
import { busyError, paramError } from '../../lib/errors.ts'
import type { FactorKind } from '../../lib/pages/contract.ts'
import type { Signals } from '../../lib/pages/script.ts'
import type { Place } from '../../lib/place.ts'
import { toQrCode } from '../../lib/qr.ts'
import type { UserRecord } from '../../lib/records.ts'
import { countCodes } from '../../lib/ways/factors.ts'
import { readMaterial, toUserHandle } from '../../lib/ways/passkey-material.ts'
import type { HeldWay } from '../../lib/ways/existing-ways.ts'
import { WayError } from '../../lib/ways/way-error.ts'
import type { AccountMount, Visit, Visits } from '../../plugins/account.ts'
import { createPageProof } from '../../plugins/page-proof.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { LIMITS } from '../../schemas/common.ts'
import { NAME_LENGTH, createFactorParts, describeRefusal, toActor } from './factor-parts.ts'
import { createPages, readDone } from './page.ts'

/** The place of the last use of a passkey. */
function findPlace ({ credential }: HeldWay): { place?: Place } {
  const { place } = readMaterial(credential)
  return place === undefined ? {} : { place }
}

/** A factor as the list of the page shows it. */
const showFactor = ({ id, way: { at }, credential: { name, last_used_at } }: HeldWay) => (
  { id, at, ...(name !== undefined && { name }), ...(last_used_at !== undefined && { last_used_at }) })

/** Second factors: the list, authenticator apps, recovery codes, and what concerns every kind. */
export function factorPages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { getHome, limits, limitWrites } = mount
  const { accounts, enrolments, factors, passkeys, store, ways } = app.identity
  const proof = createPageProof(app, mount)
  const add = createPages(app, mount, visits)
  const { goOn, list, over, readId, sendCodes, signInAgain, listOwn } = createFactorParts(app, mount, visits)
  async function requireRecord ({ user: { user_id } }: Visit): Promise<UserRecord> {
    const record = await store.collection<UserRecord>('users').get(user_id)
    if (record === null) throw over()
    return record
  }

  /** What a browser is told after a removal: the passkeys that are left. It hides the others. */
  function tellAccepted (user_id: string, left: readonly HeldWay[]): Signals {
    const allAcceptedCredentialIds = left.map(({ credential }) => readMaterial(credential).credential_id)
    return { signalAllAcceptedCredentials: { rpId: passkeys.party?.id, userId: toUserHandle(user_id), allAcceptedCredentialIds } }
  }

  add('/factors', 'account-factors', {
    section: 'factors',
    sensitive: true,
    asksProof: true,
    async show (visit, request) {
      const { apps, passkeys: own, codes } = await listOwn(visit)
      const isUsable = ({ id, way }: HeldWay) => passkeys.has({ ways: { [id]: way } })
      return {
        apps: apps.map(showFactor),
        passkeys: own.map((held) => ({ ...showFactor(held), ...(!isUsable(held) && { foreign: true }), ...findPlace(held) })),
        ...(codes !== undefined && { codes: countCodes([codes]) }),
        mayAdd: ways.canAddFactors,
        mayAddPasskey: ways.canAddFactors && passkeys.party !== undefined,
        // Without the form there is no proof.
        ...(!ways.canAddFactors && { passkey: undefined }),
        ...(readDone(request).done === 'passkey-removed' && { signals: tellAccepted(visit.user.user_id, own.filter(isUsable)) })
      }
    },
    async submit (visit, request, reply) {
      await proof.require(request, visit)
      const { way: id } = await enrolments.begin(toActor(visit), 'totp', readField(request, 'name').trim().slice(0, NAME_LENGTH))
      return reply.redirect(`${getHome()}/factors/add?${new URLSearchParams({ id }).toString()}`, 303)
    },
    describeRefusal
  })

  add('/factors/add', 'account-factor-add', {
    section: 'factors',
    path: 'factors',
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
    section: 'factors',
    path: 'factors/codes',
    sensitive: true,
    asksProof: true,
    show: () => ({}),
    async submit (visit, request, reply) {
      const [codes, factor] = [readField(request, 'codes'), readField(request, 'factor')].map((id) => id.slice(0, LIMITS.id)) as [string, string]
      if (codes === '') {
        await proof.require(request, visit)
        const { apps, passkeys: own } = await listOwn(visit)
        if (apps.length + own.length === 0) throw over()
        const made = await factors.prepareCodes(toActor(visit))
        return await sendCodes(reply, visit, { codes: made.id }, made)
      }
      await limitWrites(visit.user.user_id)
      if (readField(request, 'kept') === '') throw paramError('kept', 'must be confirmed')
      if (factor !== '') return await goOn(request, reply, visit, { kind: 'totp', way: factor, codes }, { kept: true })
      if ((await ways.findPrepared(visit.actor, codes))?.way.kind !== 'recovery') throw new WayError('unknown')
      await accounts.renewCodes(toActor(visit), codes)
      return reply.redirect(list('codes'), 303)
    },
    describeRefusal
  })

  /** @throws ErrNotFound for an id that is none of theirs */
  async function findOwn (visit: Visit, request: FastifyRequest): Promise<{ held: HeldWay, kind: FactorKind, isLast: boolean }> {
    const { apps, passkeys: own } = await listOwn(visit)
    const id = readId(request)
    const held = [...apps, ...own].find((one) => one.id === id)
    if (held === undefined) throw over()
    return { held, kind: held.way.kind === 'passkey' ? 'passkey' : 'totp', isLast: apps.length + own.length === 1 }
  }

  add('/factors/remove', 'account-factor-remove', {
    section: 'factors',
    path: 'factors',
    sensitive: true,
    asksProof: true,
    async show (visit, request) {
      const { held: { id, credential: { name } }, kind, isLast } = await findOwn(visit, request)
      return { id, kind, isLast, ...(name !== undefined && { name }) }
    },
    async submit (visit, request, reply) {
      const id = readId(request)
      const { proofs, confirm } = await proof.require(request, visit)
      const kind = (await ways.get(await requireRecord(visit), id))?.way.kind
      const { epoch } = await accounts.removeFactor({ ...toActor(visit), confirm }, id, { isEnd: readField(request, 'end_sessions') !== '' })
      await signInAgain(request, reply, visit, epoch, proofs)
      return reply.redirect(list(kind === 'passkey' ? 'passkey-removed' : 'factor-removed'), 303)
    },
    describeRefusal
  })

  add('/factors/rename', 'account-factor-rename', {
    section: 'factors',
    path: 'factors',
    sensitive: true,
    async show (visit, request) {
      const { held: { id, credential: { name } }, kind } = await findOwn(visit, request)
      return { id, kind, ...(name !== undefined && { name }) }
    },
    async submit (visit, request, reply) {
      await limitWrites(visit.user.user_id)
      const { held: { credential } } = await findOwn(visit, request)
      // Another use at the same moment has written the credential: the person tries again.
      if (await ways.update(credential, { name: readField(request, 'name').trim().slice(0, NAME_LENGTH) }) === null) throw busyError('the second factor')
      return reply.redirect(list('renamed'), 303)
    },
    describeRefusal
  })
}
