import type { FastifyInstance } from 'fastify'
import { paramError } from '../../lib/errors.ts'
import { ATTESTATION } from '../../lib/sign-in/steps/enrol-passkey.ts'
import { MESSAGE_LENGTH } from '../../lib/ways/passkey-messages.ts'
import type { AccountMount, Visits } from '../../plugins/account.ts'
import { createPageProof, toPageSecret } from '../../plugins/page-proof.ts'
import { sendPage } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { NAME_LENGTH, createFactorParts, describeRefusal, toActor } from './factor-parts.ts'
import { createPages } from './page.ts'

/**
 * The page that adds a passkey. The challenge is given out after the proof only, and to this browser: so whoever answers it within five
 * minutes has brought the proof.
 */
export function passkeyPages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { look, limitWrites } = mount
  const { passkeys } = app.identity
  const proof = createPageProof(app, mount)
  const { goOn, over } = createFactorParts(app, mount, visits)
  const add = createPages(app, mount, visits)

  add('/factors/passkeys', 'account-passkey-add', {
    section: 'methods',
    path: 'factors/passkeys',
    sensitive: true,
    asksProof: true,
    show: (_visit, request) => ({ name: request.method === 'POST' ? readField(request, 'name').trim().slice(0, NAME_LENGTH) : undefined }),
    async submit (visit, request, reply) {
      const name = readField(request, 'name').trim().slice(0, NAME_LENGTH)
      const attestation = readField(request, ATTESTATION)
      if (attestation === '') {
        await proof.require(request, visit)
        const options = await passkeys.askNewOf(visit.user.user_id, toPageSecret(visit))
        if (options === null) throw over()
        return await sendPage(reply, 'account-passkey-add', { ...visit.view, name, creation: true, passkey: { mode: 'create', options } }, { look })
      }
      await limitWrites(visit.user.user_id)
      if (attestation.length > MESSAGE_LENGTH) throw paramError('passkey', 'is too long')
      const way = await passkeys.prepare(toActor(visit), toPageSecret(visit), attestation, name)
      return await goOn(request, reply, visit, { kind: 'passkey', way }, {})
    },
    describeRefusal
  })
}
