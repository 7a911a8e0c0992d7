import type { FastifyInstance } from 'fastify'
import { countCharacters } from '../../lib/checks.ts'
import { IdentityError, paramError } from '../../lib/errors.ts'
import { toTimestamp } from '../../lib/clock.ts'
import type { Proof } from '../../lib/proofs.ts'
import { PASSWORD } from '../../lib/way.ts'
import type { Signals } from '../../lib/pages/script.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import { toUserHandle } from '../../lib/ways/passkey-material.ts'
import { beginsSignIn } from '../../lib/ways/words.ts'
import { WayError } from '../../lib/ways/way-error.ts'
import type { AccountMount, Visit, Visits } from '../../plugins/account.ts'
import { createPageProof } from '../../plugins/page-proof.ts'
import { describeLimit, describePassword } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { LIMITS } from '../../schemas/common.ts'
import { createPages, describeProof, readDone } from './page.ts'

/** Why a change of the password was refused, in the reader's language. */
function describeRefusal (error: IdentityError, min: number): Message {
  if (error.code === 'ErrLimit') return describeLimit(error)
  return describePassword(error, min) ?? describeProof(error) ?? (({ account }) => account.refused)
}

/** The person's name and password. */
export function profilePages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { limitWrites, limitPasswords, passwordMin, now } = mount
  const { users, accounts, passkeys } = app.identity
  const proof = createPageProof(app, mount)
  const add = createPages(app, mount, visits)

  /** What a browser is told after a rename, so that it shows the new name with the passkeys of the person. */
  function tellName ({ user_id, account, name, hasPasskey }: Visit['user'], { done }: ReturnType<typeof readDone>): { signals?: Signals } {
    if (done !== 'name' || !hasPasskey) return {}
    return { signals: { signalCurrentUserDetails: { rpId: passkeys.party?.id, userId: toUserHandle(user_id), name: account, displayName: name || account } } }
  }

  add('/', 'account-profile', {
    section: 'profile',
    show: ({ user }, request) => ({ name: user.name, created_at: user.created_at, ...tellName(user, readDone(request)) }),
    async submit ({ actor, user }, request) {
      const name = readField(request, 'name').trim()
      await limitWrites(user.user_id)
      if (countCharacters(name) > LIMITS.name) throw new IdentityError('ErrParam', `name: must have at most ${LIMITS.name} characters`)
      await users.patchOwn(user.user_id, { data: { name } }, actor)
      return 'name'
    }
  })

  add('/password', 'account-password', {
    section: 'methods',
    path: 'password',
    sensitive: true,
    asksProof: true,
    show: async ({ user }) => ({ mayRemove: await accounts.mayRemovePassword(user.user_id) }),
    async submit (visit, request, reply) {
      const { actor, server, session, user: { user_id } } = visit
      const password = readField(request, 'password')
      await limitPasswords(user_id)
      const { password: current_password, proveMore } = await proof.read(request, visit)
      if (countCharacters(password) > LIMITS.password) throw paramError('current_password', 'is wrong')
      const { epoch } = await users.patchOwn(user_id, { data: { password, current_password } }, actor, proveMore)
      // The change has ended all sign-ins, this one too. The person has just typed their password, so this browser is signed in again.
      const others = session.proofs.filter(({ kind }) => kind !== 'password')
      const proofs: Proof[] = [{ way: PASSWORD, kind: 'password', at: toTimestamp(now()) }, ...others]
      await visits.signIn(request, reply, server, { accountId: user_id, user_epoch: epoch, proofs })
      return 'password'
    },
    describeRefusal: (error) => error.code === 'ErrParam' || error.code === 'ErrLimit' ? describeRefusal(error, passwordMin) : undefined
  })

  add('/password/remove', 'account-password-remove', {
    section: 'methods',
    path: 'password',
    sensitive: true,
    asksProof: true,
    show: () => ({}),
    async submit (visit, request, reply) {
      const { actor, server, session, user: { user_id } } = visit
      await limitPasswords(user_id)
      const { proofs: proved, confirm } = await proof.require(request, visit)
      const { epoch } = await accounts.removePassword({ ...actor, epoch: session.user_epoch, confirm })
      // What this browser has proved beside the password stands, if a sign-in can begin with it. Otherwise the person signs in by that way.
      const proofs = [...proved, ...session.proofs.filter(({ way }) => proved.every((one) => one.way !== way))].filter(({ kind }) => kind !== 'password')
      if (proofs.some(beginsSignIn)) await visits.signIn(request, reply, server, { accountId: user_id, user_epoch: epoch, proofs })
      return 'password-removed'
    },
    describeRefusal: (error) => error instanceof WayError && error.refusal === 'last'
      ? ({ account }) => account.lastPassword
      : error.code === 'ErrParam' || error.code === 'ErrLimit' ? describeRefusal(error, passwordMin) : undefined
  })
}
