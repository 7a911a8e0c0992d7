import type { FastifyInstance } from 'fastify'
import { countCharacters } from '../../lib/checks.ts'
import { IdentityError, paramError } from '../../lib/errors.ts'
import { toTimestamp } from '../../lib/clock.ts'
import type { Proof } from '../../lib/proofs.ts'
import { PASSWORD } from '../../lib/way.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import type { AccountMount, Visits } from '../../plugins/account.ts'
import { createBrowserCookies } from '../../plugins/known-browsers.ts'
import { createPageProof } from '../../plugins/page-proof.ts'
import { describeLimit, describePassword } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { LIMITS } from '../../schemas/common.ts'
import { createPages, describeProof } from './page.ts'

/** Why a change of the password was refused, in the reader's language. */
function describeRefusal (error: IdentityError, min: number): Message {
  if (error.code === 'ErrLimit') return describeLimit(error)
  return describePassword(error, min) ?? describeProof(error) ?? (({ account }) => account.refused)
}

/** The person's name and password. */
export function profilePages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { getIssuer, limitWrites, limitPasswords, passwordMin, now } = mount
  const { users, knownBrowsers } = app.identity
  const browsers = createBrowserCookies(knownBrowsers, getIssuer)
  const proof = createPageProof(app, mount)
  const add = createPages(app, mount, visits)

  add('/', 'account-profile', {
    section: 'profile',
    show: ({ user: { name, created_at } }) => ({ name, created_at }),
    async submit ({ actor, user }, request) {
      const name = readField(request, 'name').trim()
      await limitWrites(user.user_id)
      if (countCharacters(name) > LIMITS.name) throw new IdentityError('ErrParam', `name: must have at most ${LIMITS.name} characters`)
      await users.patchOwn(user.user_id, { data: { name } }, actor)
      return 'name'
    }
  })

  add('/password', 'account-password', {
    section: 'password',
    sensitive: true,
    show: () => ({}),
    async submit (visit, request, reply) {
      const { actor, server, session, user: { user_id, account } } = visit
      const password = readField(request, 'password')
      await limitPasswords(user_id)
      const { password: current_password, proveMore } = await proof.read(request, visit)
      if (countCharacters(password) > LIMITS.password) throw paramError('current_password', 'is wrong')
      const { epoch } = await users.patchOwn(user_id, { data: { password, current_password } }, actor, proveMore)
      // The change has ended all sign-ins, this one too. The person has just typed their password, so this browser is signed in again.
      const others = session.proofs.filter(({ kind }) => kind !== 'password')
      const proofs: Proof[] = [{ way: PASSWORD, kind: 'password', at: toTimestamp(now()) }, ...others]
      await visits.signIn(request, reply, server, { accountId: user_id, user_epoch: epoch, proofs })
      browsers.remember(request, reply, account, { user_id, epoch })
      return 'password'
    },
    describeRefusal: (error) => error.code === 'ErrParam' || error.code === 'ErrLimit' ? describeRefusal(error, passwordMin) : undefined
  })
}
