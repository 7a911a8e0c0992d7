import type { FastifyInstance } from 'fastify'
import { IdentityError } from '../../lib/errors.ts'
import { type AccountMount, createVisits } from '../../plugins/account.ts'
import { keepLanguage } from '../../plugins/language.ts'
import { createPageError } from '../../plugins/pages.ts'
import { parseForms } from '../../plugins/sign-in-forms.ts'
import { activityPages } from './activity.ts'
import { clientPages } from './clients.ts'
import { addressPages } from './address.ts'
import { profilePages } from './profile.ts'
import { sessionPages } from './sessions.ts'
import { signInPages } from './sign-in.ts'

/** The pages where people see and change their own account, without an app and without a script. */
export async function accountRoutes (app: FastifyInstance, mount: AccountMount): Promise<void> {
  const handleError = createPageError(mount.look)
  app.setErrorHandler(handleError)
  app.setNotFoundHandler((request, reply) => handleError(new IdentityError('ErrNotFound', 'path: no such page'), request, reply))
  parseForms(app)
  keepLanguage(app, mount.getIssuer)
  const visits = createVisits(app, mount)
  for (const add of [signInPages, profilePages, addressPages, sessionPages, activityPages, clientPages]) add(app, mount, visits)
}
