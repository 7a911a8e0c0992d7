import type { FastifyInstance } from 'fastify'
import { IdentityError } from '../../lib/errors.ts'
import { type AccountMount, createVisits } from '../../plugins/account.ts'
import { answerRepeats } from '../../plugins/form-repeats.ts'
import { keepLanguage } from '../../plugins/language.ts'
import { createPageError } from '../../plugins/pages.ts'
import { parseForms } from '../../plugins/sign-in-forms.ts'
import { activityPages } from './activity.ts'
import { clientPages } from './clients.ts'
import { addressLinkPages } from './address-link.ts'
import { addressPages } from './address.ts'
import { dataPages } from './data.ts'
import { enrolLinkPages } from './enrol-link.ts'
import { factorPages } from './factors.ts'
import { identityPages } from './identities.ts'
import { methodPages } from './methods.ts'
import { passkeyPages } from './passkeys.ts'
import { serveScript } from './script.ts'
import { profilePages } from './profile.ts'
import { sessionPages } from './sessions.ts'
import { signInPages } from './sign-in.ts'

/**
 * The pages where people see and change their own account, without an app and, but for passkeys, without a script.
 * @param options.isOn false: only the links about an address, and the sign-in that a change of it needs
 */
export async function accountRoutes (app: FastifyInstance, { isOn, ...mount }: AccountMount & { isOn: boolean }): Promise<void> {
  const handleError = createPageError(mount.look)
  app.setErrorHandler(handleError)
  parseForms(app)
  keepLanguage(app, mount.getIssuer)
  answerRepeats(app, mount)
  if (app.identity.passkeys.party !== undefined) serveScript(app)
  const visits = createVisits(app, mount)
  for (const add of [signInPages, addressLinkPages, enrolLinkPages]) add(app, mount, visits)
  if (!isOn) return
  app.setNotFoundHandler((request, reply) => handleError(new IdentityError('ErrNotFound', 'path: no such page'), request, reply))
  const { passkeys, upstreams, personalTokens } = app.identity
  profilePages(app, mount, visits)
  methodPages(app, mount, visits)
  factorPages(app, mount, visits)
  if (passkeys.party !== undefined) passkeyPages(app, mount, visits)
  if (upstreams !== undefined) identityPages(app, mount, visits)
  addressPages(app, mount, visits)
  sessionPages(app, mount, visits)
  if (personalTokens !== undefined) (await import('./tokens.ts')).tokenPages(app, mount, visits, personalTokens)
  activityPages(app, mount, visits)
  clientPages(app, mount, visits)
  dataPages(app, mount, visits)
}
