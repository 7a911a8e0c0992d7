import type { FastifyInstance } from 'fastify'
import { IdentityError } from '../../lib/errors.ts'
import { type AccountMount, createVisits } from '../../plugins/account.ts'
import { keepLanguage } from '../../plugins/language.ts'
import { createPageError } from '../../plugins/pages.ts'
import { parseForms } from '../../plugins/sign-in-forms.ts'
import { activityPages } from './activity.ts'
import { clientPages } from './clients.ts'
import { addressLinkPages } from './address-link.ts'
import { addressPages } from './address.ts'
import { factorPages } from './factors.ts'
import { profilePages } from './profile.ts'
import { sessionPages } from './sessions.ts'
import { signInPages } from './sign-in.ts'

/**
 * The pages where people see and change their own account, without an app and without a script.
 * @param options.isOn false: only the links about an address, and the sign-in that a change of it needs
 */
export async function accountRoutes (app: FastifyInstance, { isOn, ...mount }: AccountMount & { isOn: boolean }): Promise<void> {
  const handleError = createPageError(mount.look)
  app.setErrorHandler(handleError)
  parseForms(app)
  keepLanguage(app, mount.getIssuer)
  const visits = createVisits(app, mount)
  for (const add of [signInPages, addressLinkPages]) add(app, mount, visits)
  if (!isOn) return
  app.setNotFoundHandler((request, reply) => handleError(new IdentityError('ErrNotFound', 'path: no such page'), request, reply))
  for (const add of [profilePages, factorPages, addressPages, sessionPages, activityPages, clientPages]) add(app, mount, visits)
}
