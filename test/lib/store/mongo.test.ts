import t from 'tap'
import { openMongoStore } from '../../../lib/store/mongo.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { runConformance } from './conformance.ts'
import { createPlaces } from './mongo/places.ts'

t.setTimeout(150_000)

if (MONGODB_URL === undefined) {
  t.skip('MONGODB_URL is not set', async () => {})
} else {
  const places = createPlaces(t, MONGODB_URL)
  await runConformance(t, {
    name: 'MongoDB',
    open: (options, place) => openMongoStore(places.url(place), options)
  })
}
