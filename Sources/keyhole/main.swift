print("keyhole")
